import { expect, test } from "vitest";
import { followable } from "./address";

test.each(["https://a.example/x?y#z", "http://a.example", "HTTPS://A.example", "mailto:a@b.example"])("%s may be followed", (address) => {
  expect(followable(address)).toBe(address);
});

test.each(["javascript:alert(1)", "JAVASCRIPT:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "data:text/html,x", "vbscript:x", "blob:https://a.example/1", "file:///etc/passwd", "//a.example", "/chat", "#x", "https://", "", undefined])(
  "%j may not",
  (address) => expect(followable(address)).toBeUndefined(),
);
