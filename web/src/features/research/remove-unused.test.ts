import { afterEach, beforeEach, expect, test, vi } from "vitest";

vi.stubGlobal("location", { origin: "http://127.0.0.1", pathname: "/library", protocol: "http:" });
vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => {} });
const { api } = await import("../../api/client");
const { queryClient } = await import("../../api/queries");
const { chooseResearch } = await import("./mode");
const { removeUnused } = await import("./remove-unused");

const question = "Why do tides differ?";
const empty = {
  conversation_id: "conv_1",
  version: 3,
  message_count: 0,
  live_turn_id: null,
  live_turn: null,
  follow_ups: [],
  project_id: null,
  title: "",
  temporary: false,
  draft: { content: "", attachments: [], version: 1 },
};

let page: object;
let tasks: object[];
let deleted: object[];

beforeEach(() => {
  page = empty;
  tasks = [];
  deleted = [];
  location.pathname = "/library";
  vi.spyOn(api, "GET").mockImplementation(((path: string) =>
    Promise.resolve({ data: path.endsWith("/research-tasks") ? { data: tasks, next_cursor: null } : page })) as never);
  vi.spyOn(api, "DELETE").mockImplementation(((_: string, { params }: { params: { header: object } }) => {
    deleted.push(params.header);
    return Promise.resolve({});
  }) as never);
});

afterEach(() => {
  chooseResearch("conv_1", null);
  queryClient.clear();
  vi.restoreAllMocks();
});

const remove = (isEmpty = () => true, leave = () => {}) => removeUnused("conv_1", question, isEmpty, leave);

test("a conversation without anything in it is removed, in the version that was read", async () => {
  await remove();
  expect(deleted).toEqual([{ "If-Match": '"v3"' }]);
});

test("it is removed before the service has stored that its question was cleared", async () => {
  page = { ...empty, draft: { ...empty.draft, content: `${question}\n`, attachments: ["file_1"] } };
  await remove();
  expect(deleted).toHaveLength(1);
});

test("a conversation with something in it stays", async () => {
  for (const used of [
    { message_count: 1 },
    { live_turn_id: "turn_1" },
    { follow_ups: [{}] },
    { project_id: "proj_1" },
    { title: "Tides" },
    { temporary: true },
    { draft: { ...empty.draft, content: "Written on another device" } },
    { draft: { ...empty.draft, attachments: ["file_1"] } },
  ]) {
    page = { ...empty, ...used };
    await remove();
    expect(deleted, JSON.stringify(used)).toEqual([]);
  }
});

test("a conversation with a task stays: the response to the request that started it may have been lost", async () => {
  tasks = [{ task_id: "task_1" }];
  await remove();
  expect(deleted).toEqual([]);
});

test("what is typed while the requests are in flight is kept", async () => {
  let typed = false;
  const removal = remove(() => !typed);
  typed = true;
  await removal;
  expect(deleted).toEqual([]);
});

test("a conversation that is shown is left first, and stays while its options are shown", async () => {
  location.pathname = "/c/conv_1";
  chooseResearch("conv_1", { depth: "quick", places: ["web"], budget: {}, refused: question });
  await remove();
  expect(deleted).toEqual([]);
  chooseResearch("conv_1", null);
  const leave = vi.fn(() => expect(deleted).toEqual([]));
  await remove(undefined, leave);
  expect(leave).toHaveBeenCalledOnce();
  expect(deleted).toHaveLength(1);
});
