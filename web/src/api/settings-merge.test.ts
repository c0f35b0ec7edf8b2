import { describe, expect, test } from "vitest";
import { merge, pickPreferences } from "./settings-merge";

const base = {
  language: "en",
  theme: "system",
  send_key: "enter",
  busy_action: "queue",
  steering_delivery: "next_step",
  default_profile: "auto",
  version: 3,
} as const;

describe("merging settings", () => {
  test("changes of different preferences are both kept, on top of the current version", () => {
    const theirs = { ...base, language: "ja", version: 5 };
    expect(merge(base, { theme: "dark" }, theirs)).toEqual({ merged: { ...theirs, theme: "dark" }, conflicts: [] });
  });

  test("the same preference changed to different values is a conflict", () => {
    const theirs = { ...base, theme: "light", send_key: "mod_enter", version: 4 } as const;
    expect(merge(base, { theme: "dark", busy_action: "steer" }, theirs)).toEqual({
      merged: { ...theirs, busy_action: "steer" },
      conflicts: ["theme"],
    });
  });

  test("the same change on both devices is not a conflict", () => {
    const theirs = { ...base, theme: "dark", version: 4 } as const;
    expect(merge(base, { theme: "dark" }, theirs)).toEqual({ merged: theirs, conflicts: [] });
  });

  test("a change that was undone does not override the other device", () => {
    const theirs = { ...base, theme: "light", version: 4 } as const;
    expect(merge(base, { theme: "system" }, theirs)).toEqual({ merged: theirs, conflicts: [] });
  });

  test("pickPreferences returns the named preferences that the change contains", () => {
    expect(pickPreferences({ theme: "dark", language: "ar" }, ["theme", "send_key"])).toEqual({ theme: "dark" });
  });
});
