import { expect, test } from "vitest";
import { parseDeviceSettings } from "./device";

test("stored settings are read, and missing or damaged ones have their defaults", () => {
  const standard = { announce: "end", letterShortcuts: true, notify: false, offerNotifications: true, sidebar: true };
  const chosen = {
    announce: "sentences",
    letterShortcuts: false,
    notify: true,
    offerNotifications: false,
    sidebar: false,
  };
  expect(parseDeviceSettings(JSON.stringify(chosen))).toEqual(chosen);
  for (const damaged of [null, "", "null", "{", "[]", '"x"', '{"announce":"shout","letterShortcuts":1,"notify":"yes"}'])
    expect(parseDeviceSettings(damaged)).toEqual(standard);
});
