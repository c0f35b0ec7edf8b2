import { QueryClientProvider } from "@tanstack/react-query";
import { renderToString } from "react-dom/server";
import { expect, test, vi } from "vitest";
import type { Conversation } from "../../api/client";

vi.stubGlobal("location", { origin: "http://127.0.0.1" });
const { queryClient } = await import("../../api/queries");
const { ConversationState } = await import("./state");

const conversation = (id: string) =>
  ({ conversation_id: id, version: 1, title: "Tides", message_count: 2, has_draft: false }) as Conversation;

const render = (id: string) =>
  renderToString(
    <QueryClientProvider client={queryClient}>
      <ConversationState conversation={{ ...conversation(id), live_turn_id: null }} current={false} />
    </QueryClientProvider>,
  );

test("a row adds no query of its own to the cache, in which every change looks at every query", () => {
  for (let row = 0; row < 3; row++) render(`conv_${row}`);
  const keys = queryClient.getQueryCache().getAll();
  expect(keys.filter(({ queryKey }) => queryKey[0] === "conversation")).toEqual([]);
});

test("a row shows the draft of a cached page, which is newer than the list", () => {
  expect(render("conv_1")).toBe("");
  queryClient.setQueryData(["conversation", "conv_1"], { draft: { content: "Hello", attachments: [], version: 1 } });
  expect(render("conv_1")).toContain('data-tooltip="draft"');
  expect(render("conv_2")).toBe("");
});
