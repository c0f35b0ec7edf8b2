import { beforeAll, describe, expect, test, vi } from "vitest";

let mailPageOf: typeof import("./mail-links").mailPageOf;
let tokenIn: typeof import("./mail-links").tokenIn;

beforeAll(async () => {
  vi.stubGlobal("document", { querySelector: () => ({ content: "true" }) });
  const links = await import("./mail-links");
  expect(links.sendsMail).toBe(true);
  ({ mailPageOf, tokenIn } = links);
});

describe("links of mails", () => {
  test("lead to their pages by the path", () => {
    expect(mailPageOf("/reset-password")).toBe("reset");
    expect(mailPageOf("/confirm-email")).toBe("confirm");
    for (const path of ["/", "/settings", "/reset-password/x", "/Reset-Password"]) expect(mailPageOf(path)).toBeNull();
  });

  test("have the token in the fragment", () => {
    const token = `mt1_${"aB3-_".repeat(17)}`;
    expect(tokenIn(`#${token}`)).toBe(token);
    expect(tokenIn(token)).toBe(token);
    for (const hash of [
      "",
      "#",
      "#mt1_",
      "#sh1_" + "a".repeat(80),
      `#${token}=`,
      `#${token}&x=1`,
      `#x${token}`,
      `#mt1_${"a".repeat(300)}`,
    ])
      expect(tokenIn(hash), hash).toBeNull();
  });
});
