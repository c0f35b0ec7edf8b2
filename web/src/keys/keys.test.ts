import { describe, expect, test } from "vitest";
import { shortcutOf, formatKeys, shortcuts, type Pressed } from "./keys";

const press = (key: string, held: Partial<Pressed> = {}): Pressed => ({
  key,
  code: "",
  ctrlKey: false,
  metaKey: false,
  shiftKey: false,
  altKey: false,
  ...held,
});

describe("shortcuts", () => {
  test("Mod is Command on a Mac and Control elsewhere, and never the other", () => {
    expect(shortcutOf(press("k", { metaKey: true }), true)).toBe("palette");
    expect(shortcutOf(press("k", { ctrlKey: true }), false)).toBe("palette");
    expect(shortcutOf(press("k", { ctrlKey: true }), true)).toBeNull();
    expect(shortcutOf(press("k", { metaKey: true }), false)).toBeNull();
    expect(shortcutOf(press("k", { ctrlKey: true, altKey: true }), false)).toBeNull(); // AltGr
  });

  test("a shortcut with a letter matches only with the Shift state that it defines", () => {
    expect(shortcutOf(press("O", { ctrlKey: true, shiftKey: true }), false)).toBe("new");
    expect(shortcutOf(press("o", { ctrlKey: true }), false)).toBeNull();
    expect(shortcutOf(press("K", { ctrlKey: true, shiftKey: true }), false)).toBeNull();
    expect(shortcutOf(press("S", { metaKey: true, shiftKey: true }), true)).toBe("sidebar");
    expect(shortcutOf(press("C", { metaKey: true, shiftKey: true }), true)).toBe("code");
  });

  test("a shortcut with a sign matches whether or not the keyboard layout needs Shift for the sign", () => {
    expect(shortcutOf(press("/", { ctrlKey: true }), false)).toBe("shortcuts");
    expect(shortcutOf(press("/", { ctrlKey: true, shiftKey: true, code: "Digit7" }), false)).toBe("shortcuts"); // German
  });

  test("on keyboards of non-Latin scripts the position of the key counts", () => {
    expect(shortcutOf(press("ن", { ctrlKey: true, code: "KeyK" }), false)).toBe("palette"); // Arabic
    expect(shortcutOf(press("Л", { ctrlKey: true, code: "KeyK" }), false)).toBe("palette"); // Russian
    expect(shortcutOf(press("t", { ctrlKey: true, code: "KeyK" }), false)).toBeNull(); // Dvorak: the letter counts
  });

  test("single letters move between messages", () => {
    expect(shortcutOf(press("j"), false)).toBe("next");
    expect(shortcutOf(press("k"), true)).toBe("previous");
    expect(shortcutOf(press("J", { shiftKey: true }), false)).toBeNull();
    expect(shortcutOf(press("Process", { code: "KeyJ" }), false)).toBeNull(); // an input method
  });

  test("keys are written as the platform writes them", () => {
    expect(formatKeys("Mod+Shift+O", true)).toBe("⇧⌘O");
    expect(formatKeys("Mod+Shift+O", false)).toBe("Ctrl+Shift+O");
    expect(formatKeys("Mod+Enter", true)).toBe("⌘↩");
    expect(formatKeys("Mod+/", false)).toBe("Ctrl+/");
    expect(formatKeys("F2", true)).toBe("F2");
  });

  test("no two shortcuts have the same keys", () => {
    const keys = Object.values(shortcuts).map((shortcut) => shortcut.keys);
    expect(new Set(keys).size).toBe(keys.length);
  });
});
