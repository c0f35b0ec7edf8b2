// The help sheet with all keyboard shortcuts. Those of the composer depend on the settings.
import { Check } from "../controls/form-controls";
import { useDevice } from "../controls/device";
import { Dialog } from "../controls/dialog";
import { Icon } from "../controls/icon";
import { useMessages } from "../messages/localization";
import type { MessageKey } from "../messages/catalog";
import { onMac, shortcuts, formatKeys, type Shortcut as PageShortcut } from "./keys";
import { useSendKey, useSendModes } from "./send-keys";
import { sendKeys } from "./send-modes";
import { shortcutMessages, type ShortcutMessageKey } from "../messages/shortcuts";

/** A shortcut of the page, or one of a part of it. */
type Shortcut = Pick<PageShortcut, "keys"> & { message: MessageKey | ShortcutMessageKey };

const everywhere: readonly Shortcut[] = [shortcuts.palette, shortcuts.new, shortcuts.sidebar, shortcuts.shortcuts];
const reading: readonly Shortcut[] = [
  shortcuts.next,
  shortcuts.previous,
  shortcuts.code,
  { keys: "Esc", message: "pages.keys.stop" },
];
const list: readonly Shortcut[] = [
  { keys: "Up Down", message: "pages.keys.rows" },
  { keys: "Shift Up Down", message: "pages.keys.select" },
  { keys: "F2", message: "pages.keys.rename" },
  { keys: onMac ? "Mod+⌫" : "Delete", message: "pages.keys.delete" },
];

/** The shortcuts of the composer. */
function useWriting(): readonly Shortcut[] {
  const { send, second: other, line } = sendKeys(useSendKey());
  const { wanted, second } = useSendModes();
  return [
    { keys: send, message: "pages.keys.send" },
    { keys: line, message: "pages.keys.line" },
    { keys: send, message: `pages.keys.${wanted}` },
    { keys: other, message: `pages.keys.${second(wanted)}` },
    { keys: "Up", message: "pages.keys.edit_last" },
    { keys: "@", message: "composer.add_files" },
  ];
}

export function ShortcutHelp({ onClose }: { onClose: () => void }) {
  const t = useMessages(shortcutMessages);
  const writing = useWriting();
  const enabled = useDevice((device) => device.letterShortcuts);
  return (
    <Dialog title={t("pages.keys.title")} onClose={onClose} wide>
      <div className="grid gap-x-10 gap-y-6 sm:grid-cols-2">
        <Group message="pages.keys.general" items={everywhere} />
        <Group message="pages.keys.reading" items={reading} />
        <Group message="pages.keys.writing" items={writing} />
        <Group message="pages.keys.list" items={list} />
      </div>
      <Check
        label={t("pages.keys.letters")}
        hint={t("pages.keys.letters_hint")}
        checked={enabled}
        onChange={(letters) => useDevice.setState({ letterShortcuts: letters })}
      />
    </Dialog>
  );
}

function Group({ message, items }: { message: ShortcutMessageKey; items: readonly Shortcut[] }) {
  const t = useMessages(shortcutMessages);
  return (
    <section>
      <h3 className="mb-1 text-xs font-medium text-faint">{t(message)}</h3>
      <dl>
        {items.map((item) => (
          <div key={item.message} className="flex items-baseline justify-between gap-4 py-1 text-sm">
            <dt>{t(item.message)}</dt>
            <dd dir="ltr" className="shrink-0">
              <Keys keys={item.keys} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const arrows = {
  Up: { icon: "arrowUp", message: "pages.keys.up" },
  Down: { icon: "arrowDown", message: "pages.keys.down" },
} as const;

/** Draws the keys of a shortcut. Arrows are icons with a name for screen readers. */
function Keys({ keys }: { keys: string }) {
  const t = useMessages(shortcutMessages);
  return keys.split(" ").map((key) => (
    <kbd
      key={key}
      className="ms-1 inline-flex min-h-5 items-center rounded-sm bg-sunken px-1.5 align-middle font-sans text-xs text-soft"
    >
      {key === "Up" || key === "Down" ? (
        <>
          <Icon name={arrows[key].icon} size={12} />
          <span className="sr-only">{t(arrows[key].message)}</span>
        </>
      ) : (
        formatKeys(key, onMac)
      )}
    </kbd>
  ));
}
