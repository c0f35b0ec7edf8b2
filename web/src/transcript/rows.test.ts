import { describe, expect, test } from "vitest";
import type { Outgoing } from "../api/outbox";
import type { Message } from "../generated/events";
import { newSince, rowsOf } from "./rows";

const said = (n: number, role: "user" | "assistant", turn = `turn_${n}`) =>
  ({ message_id: `msg_${n}`, parent_message_id: n > 1 ? `msg_${n - 1}` : null, role, status: "complete", turn_id: turn, parts: [] }) as unknown as Message;
const sent = (more: Partial<Outgoing>): Outgoing => ({ key: "k", conversationID: "conv_1", text: "hi", at: 0, state: "sending", problem: null, turnID: null, ...more });
const keys = (...args: Parameters<typeof rowsOf>) => rowsOf(...args).map((row) => `${row.kind}:${row.key}`);

const path = [said(1, "user", "turn_1"), said(2, "assistant", "turn_1"), said(3, "user", "turn_2"), said(4, "assistant", "turn_2")];
const all = ["question:msg_1", "answer:msg_2", "question:msg_3", "answer:msg_4"];

describe("the rows of a conversation", () => {
  test("are its messages", () => expect(keys(path, [], null)).toEqual(all));

  test("end with what is on its way", () => expect(keys(path, [sent({})], null)).toEqual([...all, "question:k"]));

  test("show the answer as soon as its turn is known, and by its own name", () => {
    expect(keys(path, [sent({ state: "accepted", turnID: "turn_3" })], null)).toEqual([...all, "question:k", "answer:turn_3"]);
    expect(keys(path, [sent({ state: "accepted", turnID: "turn_3" })], { turnID: "turn_3", messageID: "msg_6", userMessageID: "msg_5" })).toEqual([...all, "question:msg_5", "answer:msg_6"]);
  });

  test("show nothing twice once the messages are there", () => {
    expect(keys(path, [sent({ state: "accepted", turnID: "turn_2" })], { turnID: "turn_2", messageID: "msg_4", userMessageID: "msg_3" })).toEqual(all);
  });

  test("end where another version begins", () => {
    expect(keys(path, [sent({ branch: { message_id: "msg_3", mode: "edit" } })], null)).toEqual(["question:msg_1", "answer:msg_2", "question:k"]);
    expect(keys(path, [sent({ branch: { message_id: "msg_4", mode: "regenerate" } })], null)).toEqual(all.slice(0, 3));
    expect(keys(path, [sent({ branch: { message_id: "msg_4", mode: "regenerate" }, state: "accepted", turnID: "turn_9" })], null)).toEqual([...all.slice(0, 3), "answer:turn_9"]);
  });

  test("stay when another version was refused", () => {
    expect(keys(path, [sent({ branch: { message_id: "msg_3", mode: "edit" }, state: "refused" })], null)).toEqual([...all, "question:k"]);
  });

  test("are the same objects for the same messages", () => {
    const [before, after] = [rowsOf(path, [], null), rowsOf([...path, said(5, "user")], [], null)];
    expect(before.every((row, at) => row === after[at])).toBe(true);
  });

  test("count what is new", () => {
    const rows = rowsOf(path, [], null);
    expect(newSince(rows, "msg_2")).toBe(2);
    expect(newSince(rows, "msg_4")).toBe(0);
    expect(newSince(rows, "gone")).toBe(0);
    expect(newSince(rows, null)).toBe(0);
  });
});
