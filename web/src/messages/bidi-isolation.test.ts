import { expect, test } from "vitest";
import { isolateValues } from "./bidi-isolation";

test("only values written in the opposite direction are isolated", () => {
  expect(isolateValues({ title: "شرح 12", count: 3 }, "ltr")).toEqual({ title: "\u2068شرح 12\u2069", count: 3 });
  expect(isolateValues({ title: "Sums" }, "ltr")).toEqual({ title: "Sums" });
  expect(isolateValues({ title: "敬語" }, "ltr")).toEqual({ title: "敬語" });
  expect(isolateValues({ keys: "Ctrl+Enter", when: "12" }, "rtl")).toEqual({
    keys: "\u2068Ctrl+Enter\u2069",
    when: "12",
  });
  expect(isolateValues(undefined, "rtl")).toBeUndefined();
});
