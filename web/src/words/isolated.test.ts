import { expect, test } from "vitest";
import { isolated } from "./isolated";

test("a value of the other direction is isolated, and no other", () => {
  expect(isolated({ title: "شرح 12", count: 3 }, "ltr")).toEqual({ title: "\u2068شرح 12\u2069", count: 3 });
  expect(isolated({ title: "Sums" }, "ltr")).toEqual({ title: "Sums" });
  expect(isolated({ title: "敬語" }, "ltr")).toEqual({ title: "敬語" });
  expect(isolated({ keys: "Ctrl+Enter", when: "12" }, "rtl")).toEqual({ keys: "\u2068Ctrl+Enter\u2069", when: "12" });
  expect(isolated(undefined, "rtl")).toBeUndefined();
});
