import { expect, test } from "vitest";
import { linkURL, webURL } from "./links";

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

test.each(["https://a.example/x?y#z", "http://a.example", "HTTPS://A.example:8443/"])(
  "%s may become the link of a source",
  (address) => expect(webURL(address)).toBe(address),
);

test.each([
  "javascript:alert(1)",
  "javascript://a.example/%0aalert(1)",
  "mailto:a@b.example",
  "https://bank.example@a.example/",
  "https://:secret@a.example/",
  "data:text/html,x",
  "//a.example",
  "https://",
  undefined,
])("%j may not become the link of a source", (address) => expect(webURL(address)).toBeUndefined());
