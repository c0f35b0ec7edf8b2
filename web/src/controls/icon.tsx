// Icons: strokes on a grid of 20, in the text colour. They are hidden from screen readers; their parent has a name.
const strokes = {
  add: "M10 4v12M4 10h12",
  archive: "M3 5h14v3H3zM4.5 8v8h11V8M8 11h4",
  arrowDown: "M10 4v12M5 11l5 5 5-5",
  arrowUp: "M10 16V4M5 9l5-5 5 5",
  bars: "M3 6h14M3 10h14M3 14h14",
  chat: "M4 4.5h12v9H9.5L6 16.5v-3H4z",
  check: "M4 10.5l4 4 8-9",
  chevronDown: "M5 8l5 5 5-5",
  chevronLeft: "M12 5l-5 5 5 5",
  chevronRight: "M8 5l5 5-5 5",
  clock: "M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM10 6v4l3 2",
  close: "M5 5l10 10M15 5L5 15",
  copy: "M7 7h9v9H7zM4 13V4h9",
  dots: "M5 9.6a.4.4 0 1 1 0 .8.4.4 0 0 1 0-.8zM10 9.6a.4.4 0 1 1 0 .8.4.4 0 0 1 0-.8zM15 9.6a.4.4 0 1 1 0 .8.4.4 0 0 1 0-.8z",
  download: "M10 3v9M6 9l4 4 4-4M4 16h12",
  edit: "M4 16l.8-3.2L13 4.6l2.4 2.4-8.2 8.2zM11.5 6l2.5 2.5",
  eye: "M2.5 10s2.8-5 7.5-5 7.5 5 7.5 5-2.8 5-7.5 5-7.5-5-7.5-5zM10 8a2 2 0 1 1 0 4 2 2 0 0 1 0-4z",
  eyeOff:
    "M3 3l14 14M7.5 5.5A7 7 0 0 1 10 5c4.7 0 7.5 5 7.5 5a13 13 0 0 1-2.3 2.8M12.5 14.5A7 7 0 0 1 10 15c-4.7 0-7.5-5-7.5-5a13 13 0 0 1 2.6-3",
  file: "M5 3h7l3.5 3.5V17H5zM12 3v3.5h3.5",
  fileText: "M5 3h7l3.5 3.5V17H5zM12 3v3.5h3.5M8 10h4.5M8 13h4.5",
  folder: "M3 5.5h5l1.5 2H17v8.5H3z",
  globe: "M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM3 10h14M10 3c4 4 4 10 0 14M10 3c-4 4-4 10 0 14",
  grip: "M7.5 5.1a.4.4 0 1 1 0 .8.4.4 0 0 1 0-.8zM7.5 9.6a.4.4 0 1 1 0 .8.4.4 0 0 1 0-.8zM7.5 14.1a.4.4 0 1 1 0 .8.4.4 0 0 1 0-.8zM12.5 5.1a.4.4 0 1 1 0 .8.4.4 0 0 1 0-.8zM12.5 9.6a.4.4 0 1 1 0 .8.4.4 0 0 1 0-.8zM12.5 14.1a.4.4 0 1 1 0 .8.4.4 0 0 1 0-.8z",
  image: "M3 4.5h14v11H3zM3 13l4-4 3.5 3.5 2-2L17 14M13 7.5h.01",
  interrupt: "M11.5 2.5L4.5 11.5h4.5l-.5 6 7-9H11z",
  link: "M8.5 11.5l3-3M9.5 6.5l1.7-1.7a2.8 2.8 0 0 1 4 4l-1.7 1.7M10.5 13.5l-1.7 1.7a2.8 2.8 0 0 1-4-4l1.7-1.7",
  keyboard: "M2.5 5.5h15v9h-15zM5.5 8.5h.01M8.5 8.5h.01M11.5 8.5h.01M14.5 8.5h.01M6.5 11.5h7",
  leave: "M8 4H4v12h4M12 6l4 4-4 4M16 10H8",
  device: "M4 4.5h12v8.5H4zM2.5 16h15",
  key: "M12.5 3.5a4 4 0 1 1-2.6 7L4.5 16H3v-2.5l1.5-.2v-1.6l1.6-.2 2.7-2.7a4 4 0 0 1 3.7-5.3zM13.5 7h.01",
  microphone: "M10 3a2.5 2.5 0 0 1 2.5 2.5v4a2.5 2.5 0 0 1-5 0v-4A2.5 2.5 0 0 1 10 3zM5 9.5a5 5 0 0 0 10 0M10 14.5V17",
  moon: "M16 12A7 7 0 0 1 8 4a7 7 0 1 0 8 8z",
  music: "M8 14.5V5l8-1.5V13M8 14.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0zM16 13a2 2 0 1 1-4 0 2 2 0 0 1 4 0z",
  panel: "M3 4h14v12H3zM8 4v12",
  pin: "M7.5 3h5l-.7 5.2 2.7 2.8H5.5l2.7-2.8zM10 11v6",
  phone: "M6.5 2.5h7v15h-7zM9.5 15h1",
  queue: "M3 5h9M3 10h9M3 15h6M14 8v7M11.5 12.5L14 15l2.5-2.5",
  print: "M6 8V3h8v5M6 14H3.500V8h13v6H14M6 12h8v5H6z",
  research: "M8 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM11 11l3 3M4 16.5h12M14.500 4.500h2M14.500 8h2",
  retry: "M15.5 7.5A6 6 0 1 0 16 11M16 4v4h-4",
  route: "M5 15a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM15 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7 13h4a3 3 0 0 0 3-3V9",
  search: "M9 4a5 5 0 1 1 0 10A5 5 0 0 1 9 4zM13 13l4 4",
  settings: "M4 6h7M15 6h1M4 14h1M9 14h7M13 4v4M7 12v4",
  share: "M10 12.5V3M6.5 6L10 2.5 13.5 6M5.5 9H4v8h12V9h-1.5",
  spark: "M10 3l1.6 5.4L17 10l-5.4 1.6L10 17l-1.6-5.4L3 10l5.4-1.6z",
  steer: "M4 16c0-6 4-8 11-8M11 4l4 4-4 4",
  stop: "M6 6h8v8H6z",
  thought: "M10 3a5 5 0 0 1 3 9v2H7v-2a5 5 0 0 1 3-9zM8 17h4",
  tool: "M12.5 4.5a3.5 3.5 0 0 0-4 5L4 14l2 2 4.5-4.5a3.5 3.5 0 0 0 5-4l-2.3 2.3-2-2z",
  trash: "M4 6h12M8 6V4h4v2M6 6l.7 10h6.6L14 6",
  thumbDown:
    "M13.5 11V3.5H7a2 2 0 0 0-1.9 1.4l-1.3 4.3A1.8 1.8 0 0 0 5.5 11.5H9l-.8 3.3c-.3 1.2.3 2.2 1.5 2.2zM13.5 3.5H17V11h-3.5",
  thumbUp:
    "M6.5 9v7.5H13a2 2 0 0 0 1.900-1.4l1.3-4.3a1.800 1.800 0 0 0-1.700-2.3H11l.8-3.3c.3-1.2-.3-2.2-1.5-2.2zM6.5 16.5H3V9h3.5",
  undo: "M7 5L3.5 8.5 7 12M4 8.5h8a4 4 0 0 1 0 8H9",
  unpin: "M7.5 3h5l-.7 5.2 2.7 2.8H5.5l2.7-2.8zM10 11v6M3.5 3.5l13 13",
  upload: "M10 13V4M6 8l4-4 4 4M4 16.5h12",
  warning: "M10 3.5L17.5 16h-15zM10 8.5V12M10 14h.01",
  wrap: "M3 5h14M3 10h11a2.5 2.5 0 0 1 0 5h-3M13 12.5L10.5 15l2.5 2.5M3 15h4",
} as const;

export type IconName = keyof typeof strokes;

/** Icons that show a reading direction, mirrored by default. */
const mirroredByDefault: ReadonlySet<IconName> = new Set(["leave", "undo"]);

/** Draws an icon. mirrored: flipped horizontally in right-to-left languages. */
export function Icon({
  name,
  size = 18,
  mirrored = mirroredByDefault.has(name),
}: {
  name: IconName;
  size?: number;
  mirrored?: boolean;
}) {
  return (
    <svg
      aria-hidden="true"
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      className={mirrored ? "shrink-0 rtl:-scale-x-100" : "shrink-0"}
    >
      <path d={strokes[name]} />
    </svg>
  );
}
