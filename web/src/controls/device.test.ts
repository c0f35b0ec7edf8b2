import { expect, test } from "vitest";
import { parseDeviceSettings } from "./device";

test("stored settings are read, and missing or damaged ones have their defaults", () => {
  const standard = { announce: "end", letterShortcuts: true, notify: false, sidebar: true };
  expect(parseDeviceSettings('{"announce":"sentences","letterShortcuts":false,"notify":true,"sidebar":false}')).toEqual(
    {
      announce: "sentences",
      letterShortcuts: false,
      notify: true,
      sidebar: false,
    },
  );
  for (const damaged of [null, "", "null", "{", "[]", '"x"', '{"announce":"shout","letterShortcuts":1,"notify":"yes"}'])
    expect(parseDeviceSettings(damaged)).toEqual(standard);
});
