// The uploads of a page, against a service whose responses the test sends.
import { expect, test } from "vitest";
import { Refusal } from "../../api/problem";
import type { QueuedUpload, ServiceUpload } from "./upload-queue";
import { Uploads, type UploadRequests } from "./uploads";

/** A page with a service that accepts every file once the test releases it. */
function page(stored: string | null = null) {
  const calls: string[] = [];
  const attached: string[] = [];
  const sending = new Map<string, { accept: () => void; refuse: (error: unknown) => void }>();
  const uploadOf = (id: string, state: string) =>
    ({ upload_id: id, state, file_id: `file_${id}`, filename: id }) as unknown as ServiceUpload;
  const known: (string | null)[] = []; // the conversation that the service has when an upload asks, if not that of the upload
  const requests: UploadRequests = {
    create: async ({ name, names }) => (
      calls.push(`create ${name}${names == null ? "" : ` for ${names}`}`),
      uploadOf(name, "pending")
    ),
    get: async (id) => (calls.push(`get ${id}`), uploadOf(id, "pending")),
    send: (id, _, { signal }) => {
      calls.push(`send ${id}`);
      return new Promise((accept, refuse) => {
        sending.set(id, { accept: () => accept(uploadOf(id, "ready")), refuse });
        signal.addEventListener("abort", () => refuse(signal.reason));
      });
    },
    cancel: async (id) => void calls.push(`cancel ${id}`),
  };
  const uploads = new Uploads({
    requests,
    attach: (conversation, files) => void attached.push(`${conversation} ${files.map(({ id }) => id).join()}`),
    conversationOfUpload: async (id) => (known.length > 0 ? known.shift()! : id),
    setUploading: () => {},
    filesChanged: async () => {},
    noticeSignOut: () => {},
    store: (list) => void (stored = list),
    stored: () => stored,
  });
  return {
    requests,
    uploads,
    calls,
    known,
    attached,
    stored: () => stored,
    accept: (id: string) => sending.get(id)!.accept(),
    refuse: (id: string, error: Refusal) => sending.get(id)!.refuse(error),
    list: () => uploads.state.getState().list,
    /** Waits until the uploads have the states, given as a text such as "a sending, b waiting". */
    until: (states: string) => {
      const text = (list: readonly QueuedUpload[]) => list.map(({ name, state }) => `${name} ${state}`).join(", ");
      return new Promise<void>((resolve) => {
        if (text(uploads.state.getState().list) === states) return resolve();
        const stop = uploads.state.subscribe(({ list }) => text(list) === states && (stop(), resolve()));
      });
    },
  };
}

const file = (name: string, content = "text") => new File([content], name);
const toConversation = { project: null, conversation: "conv_1" };

test("three files are sent at a time, and each becomes part of the message", async () => {
  const { uploads, calls, attached, accept, until } = page();
  uploads.add(
    ["a", "b", "c", "d"].map((name) => file(name)),
    toConversation,
  );
  await until("a sending, b sending, c sending, d waiting");
  await expect.poll(() => calls.filter((call) => call.startsWith("send"))).toEqual(["send a", "send b", "send c"]);
  accept("b");
  await until("a sending, b ready, c sending, d sending");
  expect(attached).toEqual([]); // the files of a message have the order in which they were chosen
  await expect.poll(() => calls.at(-1)).toBe("send d");
  for (const name of ["a", "c", "d"]) accept(name);
  await until("");
  expect(attached).toEqual(["a", "b", "c", "d"].map((name) => `conv_1 file_${name}`));
  await expect.poll(() => uploads.state.getState().ended).toEqual({ number: 1, uploaded: 4, stopped: [] });
});

test("a file that is refused is left out of the order, and is cleared once the message is sent", async () => {
  const { uploads, calls, attached, refuse, accept, list, until } = page();
  uploads.add([file("a"), file("b")], toConversation);
  await until("a sending, b sending");
  await expect.poll(() => calls).toContain("send b");
  accept("b");
  await until("a sending, b ready");
  refuse("a", new Refusal(415, "unsupported", "", null, 0));
  await until("a stopped");
  expect(attached).toEqual(["conv_1 file_b"]);
  uploads.clearStopped("conv_2");
  expect(list()).toHaveLength(1);
  uploads.clearStopped("conv_1");
  expect(list()).toEqual([]);
});

test("a cancelled upload is cancelled on the service and becomes no file", async () => {
  const { uploads, calls, attached, list, until } = page();
  uploads.add([file("a")], toConversation);
  await expect.poll(() => calls.at(-1)).toBe("send a");
  uploads.cancel(list()[0]!.id);
  await until("");
  expect(calls.at(-1)).toBe("cancel a");
  expect(attached).toEqual([]);
});

test("an upload that has stopped is reported, and a retry continues it", async () => {
  const { uploads, calls, refuse, accept, list, until } = page();
  uploads.add([file("a"), file("empty", "")], toConversation);
  await expect.poll(() => calls.at(-1)).toBe("send a");
  refuse("a", new Refusal(503, "unavailable", "", null, 0));
  await until("a stopped, empty stopped");
  expect(list().map(({ problem }) => problem?.kind)).toEqual(["unavailable", "empty"]);
  await expect.poll(() => uploads.state.getState().ended.stopped).toEqual(["empty", "a"]);
  uploads.retry(list()[0]!.id);
  await expect.poll(() => calls.slice(-2)).toEqual(["get a", "send a"]);
  accept("a");
  await until("empty stopped");
});

test("an upload names the conversation that the service has, and a repeat of its request the same one", async () => {
  const { uploads, calls, known, requests, list, until } = page();
  const { create } = requests;
  requests.create = async (upload, content) => {
    await create(upload, content);
    throw new Refusal(0, "unreachable", "", null, 0);
  };
  known.push(null);
  uploads.add([file("a")], toConversation);
  await until("a stopped");
  uploads.add([file("b")], toConversation);
  uploads.add([file("c")], { project: null, conversation: null });
  await until("a stopped, b stopped, c stopped");
  for (const { id } of list()) uploads.retry(id);
  await expect.poll(() => calls.length).toBe(6);
  const once = ["create a", "create b for conv_1", "create c"];
  expect(calls.toSorted()).toEqual([...once, ...once].toSorted());
});

test("a page continues the uploads that its reload has interrupted, without their files", async () => {
  const before = page();
  before.uploads.add([file("a")], toConversation);
  await expect.poll(() => before.calls.at(-1)).toBe("send a");
  const after = page(before.stored());
  after.uploads.resume();
  await after.until("a stopped");
  expect(after.calls).toEqual(["get a"]);
  expect(after.list()[0]!.problem?.kind).toBe("interrupted");
  expect(after.stored()).toBe(before.stored());
});
