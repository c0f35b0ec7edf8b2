import { expect, test } from "vitest";
import { pendingChanges, withPendingChanges } from "./pending-changes";

const response = { conversation_id: "conv_1", title: "Tides", pinned_at: null };

test("the changes that are not stored yet override responses, the last one first", () => {
  pendingChanges.set("conv_1", new Set([{ title: "Ebb", pinned_at: "now" }, { title: "Flow" }]));
  expect(withPendingChanges(response)).toEqual({ conversation_id: "conv_1", title: "Flow", pinned_at: "now" });
  const other = { ...response, conversation_id: "conv_2" };
  expect(withPendingChanges(other)).toBe(other);
  pendingChanges.delete("conv_1");
  expect(withPendingChanges(response)).toBe(response);
});
