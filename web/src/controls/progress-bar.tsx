// A bar that shows how much of something is done.
interface ProgressBarProps {
  label: string;
  /** The part that is done, from 0 to 1; null: not known. */
  value: number | null;
}

export function ProgressBar({ label, value }: ProgressBarProps) {
  const percent = value === null ? null : Math.floor(100 * Math.min(1, Math.max(0, value)));
  return (
    // A drawing, because the content security policy does not allow a width in a style attribute.
    <svg
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent ?? undefined}
      viewBox="0 0 100 1"
      preserveAspectRatio="none"
      className={`h-2 w-full rounded-full bg-sunken text-accent rtl:-scale-x-100 ${percent === null ? "animate-pulse" : ""}`}
    >
      <rect width={percent ?? 100} height="1" fill="currentColor" opacity={percent === null ? 0.4 : 1} />
    </svg>
  );
}
