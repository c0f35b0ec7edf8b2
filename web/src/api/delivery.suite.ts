// What the service does with the requests of Delivery. The stand-in of its tests passes this suite, and so does the service.
import { expect } from "vitest";

export interface DeliveredTo {
  /** Sends a request of the account. */
  send(path: string, init: { method: string; body: string; headers: Record<string, string> }): Promise<Response>;
  /** Begins a turn in a conversation, which is live until the suite has ended, and returns its identifier. */
  begin(conversation: string): Promise<string>;
  /** Returns an identifier that a conversation may get. */
  newID(): string;
}

interface Problem {
  code: string;
  current?: { temporary?: boolean; version?: number };
  errors?: { field: string }[];
}

export async function checkDelivery(service: DeliveredTo): Promise<void> {
  const send = async (method: string, path: string, body: object, headers: Record<string, string> = {}) => {
    const response = await service.send(path, { method, body: JSON.stringify(body), headers });
    const turn = response.headers.get("X-Turn-Id");
    if (turn === null) return { status: response.status, turn, body: (await response.json()) as unknown };
    await response.body?.cancel();
    return { status: response.status, turn, body: null };
  };
  const problem = ({ body }: { body: unknown }) => body as Problem;
  const conversation = service.newID();
  const chat = (text: string, key: string, more: object = {}) =>
    send(
      "POST",
      "/chat",
      { conversation_id: conversation, input: [{ type: "text", text }], if_busy: "queue", ...more },
      { "Idempotency-Key": key },
    );

  // A conversation is created once; one that exists with other values is a conflict that shows it.
  const early = await chat("Too early", "early");
  expect([early.status, problem(early).code]).toEqual([404, "not_found"]);
  expect((await send("PUT", `/conversations/${conversation}`, { profile: null })).status).toBe(201);
  const other = await send("PUT", `/conversations/${conversation}`, { profile: null, temporary: true });
  expect([other.status, problem(other).code, problem(other).current?.temporary]).toEqual([
    409,
    "version_required",
    false,
  ]);

  // A message with an unknown tool names the field, and its key stays free.
  const refused = await chat("With tools", "tools", { tools: { off: ["no_such_tool"] } });
  expect([refused.status, problem(refused).code]).toEqual([422, "invalid"]);
  expect(problem(refused).errors?.map(({ field }) => field)).toEqual(["body.tools.off[0]"]);

  // A message that is sent again has the turn that it started.
  const free = service.newID();
  await send("PUT", `/conversations/${free}`, { profile: null });
  const first = await chat("First", "first", { conversation_id: free });
  const repeated = await chat("First", "first", { conversation_id: free });
  expect([first.status, repeated.status, repeated.turn]).toEqual([200, 200, first.turn]);
  expect(first.turn).toMatch(/^turn_/);

  // During a turn, a message that is sent again is the same follow-up; with another text, its key is refused.
  const turn = await service.begin(conversation);
  const queued = await chat("Second", "second");
  const again = await chat("Second", "second");
  const item = (queued.body as { follow_up_id: string }).follow_up_id;
  expect([queued.status, again.status, (again.body as { follow_up_id: string }).follow_up_id]).toEqual([
    202,
    202,
    item,
  ]);
  const mismatch = await chat("Another text", "second");
  expect([mismatch.status, problem(mismatch).code]).toEqual([422, "idempotency_mismatch"]);

  // An input for the live turn is accepted once under its name.
  const steering = (text: string) =>
    send("POST", "/chat/steering", {
      type: "input",
      turn_id: turn,
      client_steering_id: "steer-1",
      input: [{ type: "text", text }],
      delivery: "next_step",
    });
  expect([(await steering("Shorter")).status, (await steering("Shorter")).status]).toEqual([202, 202]);
  expect((await steering("Longer")).status).toBe(422);

  // A change of a follow-up needs its version.
  const followUp = (version: number) =>
    send("PATCH", `/conversations/${conversation}/follow-ups/${item}`, { state: "cancelled", version });
  const stale = await followUp(7);
  expect([stale.status, problem(stale).code, problem(stale).current?.version]).toEqual([409, "stale_version", 1]);
  const changed = (await followUp(1)).body as { state: string; version: number };
  expect([changed.state, changed.version]).toEqual(["cancelled", 2]);
}
