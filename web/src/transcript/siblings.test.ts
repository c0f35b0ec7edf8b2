import { expect, test, vi } from "vitest";
import type { Schemas } from "../api/client";

vi.stubGlobal("location", { origin: "http://127.0.0.1" });
const { likelyFirst } = await import("./siblings");

const branch = (n: number, base: string | null, head: string | null = `head_${n}`) =>
  ({ branch_id: `br_${n}`, base_message_id: base, head_message_id: head, name: "", active: false, created_at: "" }) satisfies Schemas["Branch"];

test("the branch that began a version is looked at in the first round, with the newer ones that may show it too", () => {
  const all = [branch(1, null), branch(2, "msg_1"), branch(3, "msg_1"), branch(4, "msg_7")];
  expect(likelyFirst(all, "msg_1", 1).map((one) => one.branch_id)).toEqual(["br_4", "br_3", "br_2", "br_1"]);
  expect(likelyFirst(all, "msg_1", 0).map((one) => one.branch_id)).toEqual(["br_4", "br_3", "br_2", "br_1"]);
  expect(likelyFirst(all, null, 0)[3]!.branch_id).toBe("br_1");
});

test("branches on which nothing was written show no version", () => {
  expect(likelyFirst([branch(1, null), branch(2, "msg_1", "msg_1"), branch(3, null, null)], "msg_1", 1).map((one) => one.branch_id)).toEqual(["br_1"]);
});
