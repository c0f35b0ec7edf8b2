import { describe, expect, test } from "vitest";
import { actionOf, type Pressed } from "./keys";

const press = (key: string, more: Partial<Pressed> = {}): Pressed => ({
  key,
  keyCode: 13,
  isComposing: false,
  shiftKey: false,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  ...more,
});

describe("keys in the composer", () => {
  test("Enter sends and Shift+Enter adds a line; with the other setting Mod+Enter sends and Enter adds a line", () => {
    expect(actionOf(press("Enter"), "enter", false)).toBe("send");
    expect(actionOf(press("Enter", { shiftKey: true }), "enter", false)).toBeNull();
    expect(actionOf(press("Enter", { metaKey: true }), "enter", false)).toBe("other");
    expect(actionOf(press("Enter", { ctrlKey: true }), "enter", false)).toBe("other");
    expect(actionOf(press("Enter"), "mod_enter", false)).toBeNull();
    expect(actionOf(press("Enter", { ctrlKey: true }), "mod_enter", false)).toBe("send");
    expect(actionOf(press("Enter", { ctrlKey: true, shiftKey: true }), "mod_enter", false)).toBe("other");
  });

  test("on a touch screen Enter adds a line, and Mod+Enter of an attached keyboard sends", () => {
    expect(actionOf(press("Enter"), "button", false)).toBeNull();
    expect(actionOf(press("Enter", { metaKey: true }), "button", false)).toBe("send");
  });

  test("keys of an input method are ignored, including the last Enter in Safari", () => {
    expect(actionOf(press("Enter", { isComposing: true }), "enter", false)).toBeNull();
    expect(actionOf(press("Enter", { keyCode: 229 }), "enter", false)).toBeNull();
    expect(actionOf(press("ArrowUp", { isComposing: true, keyCode: 38 }), "enter", true)).toBeNull();
  });

  test("ArrowUp edits the last message only if the field is empty", () => {
    expect(actionOf(press("ArrowUp"), "enter", true)).toBe("edit-last");
    expect(actionOf(press("ArrowUp"), "enter", false)).toBeNull();
    expect(actionOf(press("ArrowUp", { shiftKey: true }), "enter", true)).toBeNull();
  });
});
