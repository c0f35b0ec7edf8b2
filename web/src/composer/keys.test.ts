import { describe, expect, test } from "vitest";
import { actionOf, otherThan, type Pressed } from "./keys";

const press = (key: string, more: Partial<Pressed> = {}): Pressed => ({ key, keyCode: 13, isComposing: false, shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, ...more });

describe("keys in the composer", () => {
  test("Enter sends and Shift+Enter makes a line, or the other way round by the setting", () => {
    expect(actionOf(press("Enter"), "enter", false)).toBe("send");
    expect(actionOf(press("Enter", { shiftKey: true }), "enter", false)).toBeNull();
    expect(actionOf(press("Enter", { metaKey: true }), "enter", false)).toBe("other");
    expect(actionOf(press("Enter", { ctrlKey: true }), "enter", false)).toBe("other");
    expect(actionOf(press("Enter"), "mod_enter", false)).toBeNull();
    expect(actionOf(press("Enter", { ctrlKey: true }), "mod_enter", false)).toBe("send");
    expect(actionOf(press("Enter", { ctrlKey: true, shiftKey: true }), "mod_enter", false)).toBe("other");
  });

  test("on a touch screen Enter makes a line, and a keyboard beside it still sends", () => {
    expect(actionOf(press("Enter"), "button", false)).toBeNull();
    expect(actionOf(press("Enter", { metaKey: true }), "button", false)).toBe("send");
  });

  test("an input method keeps its keys, Safari's last Enter too", () => {
    expect(actionOf(press("Enter", { isComposing: true }), "enter", false)).toBeNull();
    expect(actionOf(press("Enter", { keyCode: 229 }), "enter", false)).toBeNull();
    expect(actionOf(press("ArrowUp", { isComposing: true, keyCode: 38 }), "enter", true)).toBeNull();
  });

  test("the arrow up edits the last message only where nothing is written", () => {
    expect(actionOf(press("ArrowUp"), "enter", true)).toBe("edit-last");
    expect(actionOf(press("ArrowUp"), "enter", false)).toBeNull();
    expect(actionOf(press("ArrowUp", { shiftKey: true }), "enter", true)).toBeNull();
  });

  test("the other key steers, unless steering is the default", () => {
    expect(otherThan("queue")).toBe("steer");
    expect(otherThan("interrupt")).toBe("steer");
    expect(otherThan("steer")).toBe("queue");
  });
});
