// All shortcuts at a glance.
import { Check } from "../controls/choice";
import { useDevice } from "../controls/device";
import { Dialog } from "../controls/dialog";
import { Icon } from "../controls/icon";
import { useSpeech } from "../words/speech";
import type { Word } from "../words/words";
import { onMac, shortcuts, shown, type Shortcut } from "./keys";

const everywhere: readonly Shortcut[] = [shortcuts.palette, shortcuts.new, shortcuts.sidebar, shortcuts.shortcuts];
const reading: readonly Shortcut[] = [shortcuts.next, shortcuts.previous, shortcuts.code, { keys: "Esc", word: "rooms.keys.stop" }];
const writing: readonly Shortcut[] = [
  { keys: "Shift+Enter", word: "rooms.keys.line" },
  { keys: "Mod+Enter", word: "rooms.keys.steer" },
  { keys: "Up", word: "rooms.keys.edit_last" },
];
const list: readonly Shortcut[] = [
  { keys: "Up Down", word: "rooms.keys.rows" },
  { keys: "F2", word: "rooms.keys.rename" },
  { keys: onMac ? "Mod+⌫" : "Delete", word: "rooms.keys.delete" },
];

export function Sheet({ onClose }: { onClose: () => void }) {
  const { say } = useSpeech();
  const alone = useDevice((device) => device.letters);
  return (
    <Dialog title={say("rooms.keys.title")} onClose={onClose} wide>
      <div className="grid gap-x-10 gap-y-6 sm:grid-cols-2">
        <Group word="rooms.keys.everywhere" items={everywhere} />
        <Group word="rooms.keys.reading" items={reading} />
        <Group word="rooms.keys.writing" items={writing} />
        <Group word="rooms.keys.list" items={list} />
      </div>
      <Check label={say("rooms.keys.letters")} hint={say("rooms.keys.letters_why")} checked={alone} onChange={(letters) => useDevice.setState({ letters })} />
    </Dialog>
  );
}

function Group({ word, items }: { word: Word; items: readonly Shortcut[] }) {
  const { say } = useSpeech();
  return (
    <section>
      <h3 className="mb-1 text-xs font-medium text-faint">{say(word)}</h3>
      <dl>
        {items.map((item) => (
          <div key={item.word} className="flex items-baseline justify-between gap-4 py-1 text-sm">
            <dt>{say(item.word)}</dt>
            <dd dir="ltr" className="shrink-0">
              <Keys keys={item.keys} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const arrows = { Up: { icon: "arrowUp", word: "rooms.keys.up" }, Down: { icon: "arrowDown", word: "rooms.keys.down" } } as const;

/** Keys one beside the other; arrows are drawn, and named for who hears them. */
function Keys({ keys }: { keys: string }) {
  const { say } = useSpeech();
  return keys.split(" ").map((key) => (
    <kbd key={key} className="ms-1 inline-flex min-h-5 items-center rounded-sm bg-sunken px-1.5 align-middle font-sans text-xs text-soft">
      {key === "Up" || key === "Down" ? (
        <>
          <Icon name={arrows[key].icon} size={12} />
          <span className="sr-only">{say(arrows[key].word)}</span>
        </>
      ) : (
        shown(key, onMac)
      )}
    </kbd>
  ));
}
