import { afterEach, expect, test } from "vitest";
import type { Conversation } from "./client";
import { pendingChanges, pendingProfile, withoutChange, withPendingChanges } from "./pending-changes";

const response = {
  conversation_id: "conv_1",
  title: "Tides",
  pinned_at: null,
  profile: "auto",
  version: 5,
} as unknown as Conversation;

afterEach(() => pendingChanges.clear());

test("the changes that are not stored yet override responses, the last one first", () => {
  const changes = new Set([{ title: "Ebb", pinned_at: "now" }, { title: "Flow" }]);
  pendingChanges.set("conv_1", { changes, stored: response });
  expect(withPendingChanges(response)).toEqual({ ...response, title: "Flow", pinned_at: "now" });
  const other = { ...response, conversation_id: "conv_2" };
  expect(withPendingChanges(other)).toBe(other);
  pendingChanges.delete("conv_1");
  expect(withPendingChanges(response)).toBe(response);
});

test("without a change, its fields are as the newest response has them, or as another change sets them", () => {
  const pending = { changes: new Set([{ pinned_at: "now" }]), stored: response };
  pendingChanges.set("conv_1", pending);
  withPendingChanges({ ...response, title: "Set elsewhere", version: 7 });
  withPendingChanges({ ...response, title: "Late", version: 6 });
  expect(withoutChange({ title: "Ebb", pinned_at: "then" }, pending)).toEqual({
    title: "Set elsewhere",
    pinned_at: "now",
  });
});

test("a message that is sent meanwhile has the profile that is being stored", () => {
  expect(pendingProfile("conv_1")).toBeNull();
  const changes = new Set([{ profile: "coding" as const }, { profile: "balanced" as const }, { title: "Ebb" }]);
  pendingChanges.set("conv_1", { changes, stored: response });
  expect(pendingProfile("conv_1")).toBe("balanced");
});
