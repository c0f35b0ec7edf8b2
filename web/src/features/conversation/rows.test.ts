import { describe, expect, test } from "vitest";
import type { Outgoing } from "../../api/outbox";
import type { Message } from "../../generated/events";
import { countRowsAfter, rowsOf } from "./rows";

const message = (n: number, role: "user" | "assistant", turn = `turn_${n}`) =>
  ({
    message_id: `msg_${n}`,
    parent_message_id: n > 1 ? `msg_${n - 1}` : null,
    role,
    status: "complete",
    turn_id: turn,
    parts: [],
  }) as unknown as Message;
const sent = (more: Partial<Outgoing>): Outgoing => ({
  key: "k",
  conversationID: "conv_1",
  text: "hi",
  writtenAt: 0,
  state: "sending",
  problem: null,
  turnID: null,
  ...more,
});
const keys = (...args: Parameters<typeof rowsOf>) => rowsOf(...args).map((row) => `${row.kind}:${row.key}`);

const path = [
  message(1, "user", "turn_1"),
  message(2, "assistant", "turn_1"),
  message(3, "user", "turn_2"),
  message(4, "assistant", "turn_2"),
];
const all = ["question:msg_1", "answer:msg_2", "question:msg_3", "answer:msg_4"];

describe("the rows of a conversation", () => {
  test("are its messages", () => expect(keys(path, [], null)).toEqual(all));

  test("end with the outgoing messages", () => expect(keys(path, [sent({})], null)).toEqual([...all, "question:k"]));

  test("include the answer once its turn is known, with its own identifier once that is known", () => {
    expect(keys(path, [sent({ state: "accepted", turnID: "turn_3" })], null)).toEqual([
      ...all,
      "question:k",
      "answer:turn_3",
    ]);
    expect(
      keys(path, [sent({ state: "accepted", turnID: "turn_3" })], {
        turnID: "turn_3",
        messageID: "msg_6",
        userMessageID: "msg_5",
      }),
    ).toEqual([...all, "question:msg_5", "answer:msg_6"]);
  });

  test("contain nothing twice once the messages are loaded", () => {
    expect(
      keys(path, [sent({ state: "accepted", turnID: "turn_2" })], {
        turnID: "turn_2",
        messageID: "msg_4",
        userMessageID: "msg_3",
      }),
    ).toEqual(all);
  });

  test("end before the message of which a new version is outgoing", () => {
    expect(keys(path, [sent({ branch: { message_id: "msg_3", mode: "edit" } })], null)).toEqual([
      "question:msg_1",
      "answer:msg_2",
      "question:k",
    ]);
    expect(keys(path, [sent({ branch: { message_id: "msg_4", mode: "regenerate" } })], null)).toEqual(all.slice(0, 3));
    expect(
      keys(
        path,
        [sent({ branch: { message_id: "msg_4", mode: "regenerate" }, state: "accepted", turnID: "turn_9" })],
        null,
      ),
    ).toEqual([...all.slice(0, 3), "answer:turn_9"]);
  });

  test("stay complete if a new version was refused", () => {
    expect(keys(path, [sent({ branch: { message_id: "msg_3", mode: "edit" }, state: "refused" })], null)).toEqual([
      ...all,
      "question:k",
    ]);
  });

  test("are the same objects for the same messages", () => {
    const [before, after] = [rowsOf(path, [], null), rowsOf([...path, message(5, "user")], [], null)];
    expect(before.every((row, at) => row === after[at])).toBe(true);
  });

  test("are counted after the last seen row", () => {
    const rows = rowsOf(path, [], null);
    expect(countRowsAfter(rows, "msg_2")).toBe(2);
    expect(countRowsAfter(rows, "msg_4")).toBe(0);
    expect(countRowsAfter(rows, "gone")).toBe(0);
    expect(countRowsAfter(rows, null)).toBe(0);
  });
});
