// Listens to the shortcuts and executes the actions requested by keys, buttons and the palette.
import { useEffect, useState } from "react";
import { deferred } from "../controls/deferred";
import { Palette } from "../features/search";
import { useDevice } from "../controls/device";
import { toast } from "../controls/toast";
import { useLocalization } from "../messages/localization";
import { requestAction, letterShortcuts, onMac, shortcutOf, useRequestedAction } from "../keys/keys";
import { lastCode, moveMessage } from "../keys/targets";

const Sheet = deferred(() => import("../keys/shortcut-help").then((m) => m.ShortcutHelp), {
  onFailure: ({ onClose }) => onClose(),
});

export function Shortcuts({ onNew, onSidebar }: { onNew: () => void; onSidebar: () => void }) {
  const { t } = useLocalization();
  const [open, setOpen] = useState<"palette" | "sheet" | null>(null);
  const requested = useRequestedAction();
  const [done, setDone] = useState(requested.count);
  useShortcuts(open === "palette");
  useEffect(() => {
    if (requested.count === done) return;
    setDone(requested.count);
    switch (requested.action) {
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
        if (code === null) return void toast(t("pages.keys.no_code"));
        navigator.clipboard.writeText(code).then(
          () => toast(t("pages.keys.code_copied"), { stays: 2_500 }),
          () => toast(t("pages.keys.code_refused"), { kind: "problem" }),
        );
      }
    }
  }, [requested, done, onNew, onSidebar, t]);
  const close = () => setOpen(null);
  return (
    <>
      {open === "palette" && <Palette onClose={close} />}
      {open === "sheet" && <Sheet onClose={close} />}
    </>
  );
}

/** Listens to the shortcuts, except under an open dialog or menu; the shortcut of the palette also closes it. */
function useShortcuts(palette: boolean): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || event.repeat) return;
      const action = shortcutOf(event, onMac);
      if (action === null) return;
      if (letterShortcuts.includes(action) && (!useDevice.getState().letterShortcuts || isTextInput(event.target)))
        return;
      if (
        !(palette && action === "palette") &&
        document.querySelector('[role="dialog"][data-state="open"], [role="menu"][data-state="open"]') !== null
      )
        return;
      event.preventDefault();
      requestAction(action);
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [palette]);
}

function isTextInput(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.closest("input, textarea, select, [role=textbox], [role=combobox], [role=listbox]") !== null)
  );
}
