import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Conversation } from "../../api/client";

vi.stubGlobal("location", { origin: "http://127.0.0.1", pathname: "/", protocol: "http:" });
vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => {} });
vi.stubGlobal("navigator", { locks: { request: () => Promise.resolve() } });
const toast = vi.hoisted(() => vi.fn());
vi.mock("../../controls/toast", () => ({ toast }));
const { api, Refusal } = await import("../../api/client");
const { moveAll } = await import("./bulk");
const { putPlacement } = await import("./placement");

const t = ((key: string) => key) as never;
const all = Array.from(
  { length: 500 },
  (_, at) =>
    ({ conversation_id: `conv_${at}`, title: `${at}`, project_id: null, version: 5 }) as unknown as Conversation,
);
type Put = { params: { path: { conversation_id: string } }; body: object };

let stored: Map<string, Conversation>;
let inFlight: number;
let most: number;
/** The next request with this number is refused for its rate; null: none. */
let limited: number | null;

/** The service. */
beforeEach(() => {
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("removeEventListener", () => {});
  stored = new Map(all.map((one) => [one.conversation_id, one]));
  inFlight = most = 0;
  limited = null;
  let requests = 0;
  vi.spyOn(api, "PUT").mockImplementation((async (_: string, { params, body }: Put) => {
    most = Math.max(most, ++inFlight);
    const refused = ++requests === limited;
    await new Promise<void>((resolve) => setImmediate(resolve));
    inFlight--;
    if (refused) throw new Refusal(429, "rate_limited", "", null, 1);
    const { conversation_id: id } = params.path;
    const after = { ...stored.get(id)!, ...body, version: stored.get(id)!.version + 1 };
    stored.set(id, after);
    return { data: after };
  }) as never);
});

afterEach(() => {
  vi.restoreAllMocks();
  toast.mockClear();
});

const projectOf = (at: number) => stored.get(`conv_${at}`)!.project_id;

test("a change of a conversation that waits in a batch counts, and at most four requests are in flight", async () => {
  const batch = moveAll(all, "proj_batch", t);
  await putPlacement({ ...all[499]!, project_id: "proj_batch" }, { project_id: "proj_later" });
  await batch;
  expect(projectOf(499)).toBe("proj_later");
  expect(all.filter((_, at) => projectOf(at) === "proj_batch").length).toBe(499);
  expect(most).toBe(4);
});

test("a change counts that was made while a batch waits after a request that was refused for its rate", async () => {
  limited = 3;
  const some = all.slice(0, 3);
  const batch = moveAll(some, "proj_batch", t);
  const later = putPlacement({ ...all[2]!, project_id: "proj_batch" }, { project_id: "proj_later" });
  await Promise.all([batch, later]);
  expect([0, 1, 2].map(projectOf)).toEqual(["proj_batch", "proj_batch", "proj_later"]);
});
