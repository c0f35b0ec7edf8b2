import { describe, expect, test } from "vitest";
import { pressed, shown, shortcuts, type Pressed } from "./keys";

const press = (key: string, held: Partial<Pressed> = {}): Pressed => ({ key, code: "", ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, ...held });

describe("shortcuts", () => {
  test("Mod is Command on a Mac and Control elsewhere, and never the other", () => {
    expect(pressed(press("k", { metaKey: true }), true)).toBe("palette");
    expect(pressed(press("k", { ctrlKey: true }), false)).toBe("palette");
    expect(pressed(press("k", { ctrlKey: true }), true)).toBeNull();
    expect(pressed(press("k", { metaKey: true }), false)).toBeNull();
    expect(pressed(press("k", { ctrlKey: true, altKey: true }), false)).toBeNull(); // AltGr
  });

  test("Shift belongs to the letters that want it", () => {
    expect(pressed(press("O", { ctrlKey: true, shiftKey: true }), false)).toBe("new");
    expect(pressed(press("o", { ctrlKey: true }), false)).toBeNull();
    expect(pressed(press("K", { ctrlKey: true, shiftKey: true }), false)).toBeNull();
    expect(pressed(press("S", { metaKey: true, shiftKey: true }), true)).toBe("sidebar");
    expect(pressed(press("C", { metaKey: true, shiftKey: true }), true)).toBe("code");
  });

  test("a sign is found where a keyboard has it", () => {
    expect(pressed(press("/", { ctrlKey: true }), false)).toBe("shortcuts");
    expect(pressed(press("/", { ctrlKey: true, shiftKey: true, code: "Digit7" }), false)).toBe("shortcuts"); // German
  });

  test("keyboards of other scripts go by the place of the key", () => {
    expect(pressed(press("ن", { ctrlKey: true, code: "KeyK" }), false)).toBe("palette"); // Arabic
    expect(pressed(press("Л", { ctrlKey: true, code: "KeyK" }), false)).toBe("palette"); // Russian
    expect(pressed(press("t", { ctrlKey: true, code: "KeyK" }), false)).toBeNull(); // Dvorak: what is written counts
  });

  test("letters alone move between messages", () => {
    expect(pressed(press("j"), false)).toBe("next");
    expect(pressed(press("k"), true)).toBe("previous");
    expect(pressed(press("J", { shiftKey: true }), false)).toBeNull();
    expect(pressed(press("Process", { code: "KeyJ" }), false)).toBeNull(); // an input method
  });

  test("keys are written as the platform writes them", () => {
    expect(shown("Mod+Shift+O", true)).toBe("⇧⌘O");
    expect(shown("Mod+Shift+O", false)).toBe("Ctrl+Shift+O");
    expect(shown("Mod+Enter", true)).toBe("⌘↩");
    expect(shown("Mod+/", false)).toBe("Ctrl+/");
    expect(shown("F2", true)).toBe("F2");
  });

  test("no two are the same", () => {
    const keys = Object.values(shortcuts).map((shortcut) => shortcut.keys);
    expect(new Set(keys).size).toBe(keys.length);
  });
});
