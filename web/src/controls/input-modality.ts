// Marks the document while the keyboard moves the focus. Browsers match :focus-visible on every focused text field, so
// only this distinguishes a field that was reached by keyboard from one that was clicked.

/** Starts to set data-keyboard on the document: after Tab, and after any key outside of text fields. */
export function startInputModality(): void {
  const mark = document.documentElement.dataset;
  const pressed = ({ key, target }: KeyboardEvent) => {
    const writes = target instanceof HTMLElement && target.matches("input, textarea, [contenteditable]");
    if (key === "Tab" || !writes) mark["keyboard"] = "";
  };
  addEventListener("keydown", pressed, true);
  addEventListener("pointerdown", () => void delete mark["keyboard"], true);
}
