import { afterEach, expect, test, vi } from "vitest";
import { exportConversation } from "./export";

afterEach(() => vi.unstubAllGlobals());

test("a conversation is downloaded in the chosen format, under the name that the service gives it", () => {
  const clicked: string[] = [];
  vi.stubGlobal("document", {
    createElement: () => ({
      href: "",
      download: undefined as string | undefined,
      click(this: { href: string; download?: string }) {
        clicked.push(`${this.href} ${JSON.stringify(this.download)}`);
      },
    }),
  });
  exportConversation("conv_1", "markdown");
  exportConversation("conv_1", "json");
  expect(clicked).toEqual([
    '/conversations/conv_1/export?format=markdown ""',
    '/conversations/conv_1/export?format=json ""',
  ]);
});
