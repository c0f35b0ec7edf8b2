import { expect, test } from "vitest";
import { linkURL } from "./links";

test.each(["https://a.example/x?y#z", "http://a.example", "HTTPS://A.example", "mailto:a@b.example"])(
  "%s may become a link",
  (address) => {
    expect(linkURL(address)).toBe(address);
  },
);

test.each([
  "javascript:alert(1)",
  "JAVASCRIPT:alert(1)",
  " javascript:alert(1)",
  "java\nscript:alert(1)",
  "data:text/html,x",
  "vbscript:x",
  "blob:https://a.example/1",
  "file:///etc/passwd",
  "//a.example",
  "/chat",
  "#x",
  "https://",
  "",
  undefined,
])("%j may not become a link", (address) => expect(linkURL(address)).toBeUndefined());
