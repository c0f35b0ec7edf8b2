// Listens to the shortcuts, in one place, and does what they, a button or the palette ask for.
import { lazy, Suspense, useEffect, useState } from "react";
import { useDevice } from "../controls/device";
import { toast } from "../controls/toast";
import { useSpeech } from "../words/speech";
import { act, letters, onMac, pressed, useAsked } from "./keys";
import { lastCode, moveMessage } from "./page";

const Palette = lazy(() => import("./palette").then((m) => ({ default: m.Palette })));
const Sheet = lazy(() => import("./sheet").then((m) => ({ default: m.Sheet })));

export function Keys({ onNew, onSidebar }: { onNew: () => void; onSidebar: () => void }) {
  const { say } = useSpeech();
  const [open, setOpen] = useState<"palette" | "sheet" | null>(null);
  const asked = useAsked();
  const [done, setDone] = useState(asked.count);
  useListening(open === "palette");
  useEffect(() => {
    if (asked.count === done) return;
    setDone(asked.count);
    switch (asked.action) {
      case "palette":
        return setOpen((before) => (before === "palette" ? null : "palette"));
      case "shortcuts":
        return setOpen("sheet");
      case "new":
        return onNew();
      case "sidebar":
        return onSidebar();
      case "next":
        return moveMessage(1);
      case "previous":
        return moveMessage(-1);
      case "code": {
        const code = lastCode();
        if (code === null) return void toast(say("rooms.keys.no_code"));
        navigator.clipboard.writeText(code).then(
          () => toast(say("rooms.keys.code_copied"), { stays: 2_500 }),
          () => toast(say("rooms.keys.code_refused"), { kind: "problem" }),
        );
      }
    }
  }, [asked, done, onNew, onSidebar, say]);
  const close = () => setOpen(null);
  return (
    <Suspense>
      {open === "palette" && <Palette onClose={close} />}
      {open === "sheet" && <Sheet onClose={close} />}
    </Suspense>
  );
}

/** A dialog in front keeps the keys to itself; the palette goes by the key that it came by. */
function useListening(palette: boolean): void {
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || event.repeat) return;
      const action = pressed(event, onMac);
      if (action === null) return;
      if (letters.includes(action) && (!useDevice.getState().letters || writes(event.target))) return;
      if (!(palette && action === "palette") && document.querySelector('[role="dialog"][data-state="open"], [role="menu"][data-state="open"]') !== null) return;
      event.preventDefault();
      act(action);
    };
    document.addEventListener("keydown", hear);
    return () => document.removeEventListener("keydown", hear);
  }, [palette]);
}

function writes(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.closest("input, textarea, select, [role=textbox], [role=combobox], [role=listbox]") !== null);
}
