// The drafts of a page, with a service and a device of the test.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Draft } from "../../api/client";
import { outboxMessage } from "../../api/delivery.fake";
import { Refusal } from "../../api/problem";
import { Drafts, type DraftBody } from "./drafts";

class FakeStorage implements Storage {
  readonly #items = new Map<string, string>();
  get length() {
    return this.#items.size;
  }
  key = (at: number) => [...this.#items.keys()][at] ?? null;
  getItem = (key: string) => this.#items.get(key) ?? null;
  setItem = (key: string, value: string) => void this.#items.set(key, value);
  removeItem = (key: string) => void this.#items.delete(key);
  clear = () => this.#items.clear();
}

/** A service with the draft of one conversation; fault: the error of the next request. */
class FakeService {
  draft: Draft = { content: "", attachments: [], version: 1, updated_at: "" } as unknown as Draft;
  readonly created: string[] = [];
  requests = 0;
  fault: Refusal | null = null;

  put({ content, attachments, version = 0 }: DraftBody): Draft {
    this.requests += 1;
    const { fault } = this;
    this.fault = null;
    if (fault !== null) throw fault;
    if (version !== this.draft.version && version !== 0)
      throw new Refusal(409, "stale_version", "", { current: this.draft } as never, 0);
    return (this.draft = { ...this.draft, content, attachments, version: this.draft.version + 1 });
  }
}

function page(service: FakeService, copies: Storage, held = new Set<string>()) {
  return new Drafts({
    put: async (_, draft) => service.put(draft),
    putBeforeClose: async (_, draft) => service.put(draft),
    create: async (id) => void service.created.push(id),
    load: async () => service.draft,
    saved: () => {},
    noticeSignOut: () => {},
    isSignedOut: () => false,
    account: () => "acct_1",
    outbox: () => [],
    copies,
    locks: {
      request: async (name: string, options: LockOptions, work: (lock: Lock | null) => unknown) => {
        if (options.ifAvailable === true) return work(held.has(name) ? null : ({} as Lock));
        held.add(name);
        return undefined;
      },
    } as unknown as LockManager,
  });
}

const textOf = (drafts: Drafts) => drafts.state.getState().byID["conv_1"]?.text;
const isUnsaved = (drafts: Drafts) => drafts.state.getState().unsaved["conv_1"] ?? false;

let service: FakeService;
let copies: Storage;
beforeEach(() => {
  vi.useFakeTimers();
  service = new FakeService();
  copies = new FakeStorage();
});
afterEach(() => void vi.useRealTimers());

test("a text is saved once after a pause in typing, and its copy on the device is removed then", async () => {
  const drafts = page(service, copies);
  drafts.open("conv_1");
  drafts.applyServiceDraft("conv_1", service.draft);
  drafts.type("conv_1", "a");
  await vi.advanceTimersByTimeAsync(400);
  drafts.type("conv_1", "ab");
  await vi.advanceTimersByTimeAsync(400);
  expect([service.requests, copies.length]).toEqual([0, 1]);
  await vi.advanceTimersByTimeAsync(400);
  expect([service.requests, service.draft.content, copies.length]).toEqual([1, "ab", 0]);
});

test("a new chat is created with its first draft", async () => {
  const drafts = page(service, copies);
  drafts.open("conv_1", { profile: null });
  drafts.type("conv_1", "hello");
  expect(drafts.pendingCreation("conv_1")).toEqual({ profile: null });
  await vi.advanceTimersByTimeAsync(500);
  expect([service.created, service.draft.content]).toEqual([["conv_1"], "hello"]);
  expect(drafts.pendingCreation("conv_1")).toBeUndefined();
});

test("an upload names a conversation that the service has, and a temporary one is created for it", async () => {
  const drafts = page(service, copies);
  drafts.open("conv_1", { profile: null });
  expect(await drafts.conversationOfUpload("conv_1")).toBeNull();
  expect(service.created).toEqual([]);
  drafts.open("conv_1", { profile: null, temporary: true });
  expect(await drafts.conversationOfUpload("conv_1")).toBe("conv_1");
  expect(service.created).toEqual(["conv_1"]);
  expect(await drafts.conversationOfUpload("conv_2")).toBe("conv_2");
});

test("a draft that cannot be saved is kept on the device, and the save is repeated", async () => {
  const drafts = page(service, copies);
  drafts.open("conv_1");
  drafts.applyServiceDraft("conv_1", service.draft);
  service.fault = new Refusal(0, "unreachable", "", null, 0);
  drafts.type("conv_1", "kept");
  await vi.advanceTimersByTimeAsync(700);
  expect([isUnsaved(drafts), copies.length]).toEqual([true, 1]);
  await vi.advanceTimersByTimeAsync(6_000);
  expect([isUnsaved(drafts), service.draft.content, copies.length]).toEqual([false, "kept", 0]);
});

test("a text from another device is not overwritten: the user chooses", async () => {
  const drafts = page(service, copies);
  drafts.open("conv_1");
  drafts.applyServiceDraft("conv_1", service.draft);
  service.put({ content: "theirs", attachments: [], version: 1 });
  drafts.type("conv_1", "mine");
  await vi.advanceTimersByTimeAsync(1_000);
  expect([service.draft.content, textOf(drafts)]).toEqual(["theirs", "mine"]);
  drafts.resolveConflict("conv_1", "mine");
  await vi.advanceTimersByTimeAsync(0);
  expect(service.draft.content).toBe("mine");
});

test("the draft of a closed page is saved by the next one, unless another tab has it open", async () => {
  const closed = page(service, copies);
  closed.open("conv_1");
  closed.applyServiceDraft("conv_1", service.draft);
  closed.type("conv_1", "left behind");
  service.fault = new Refusal(0, "unreachable", "", null, 0);
  closed.saveBeforeClose();
  await vi.advanceTimersByTimeAsync(0);
  vi.clearAllTimers();
  await page(service, copies, new Set(["turnstone-draft/acct_1/conv_1"])).saveAbandoned();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(service.draft.content).toBe("");
  await page(service, copies).saveAbandoned();
  await vi.advanceTimersByTimeAsync(0);
  expect(service.draft.content).toBe("left behind");
});

test("an accepted message clears the draft that contains its text", async () => {
  const drafts = page(service, copies);
  drafts.open("conv_1");
  drafts.applyServiceDraft("conv_1", service.draft);
  drafts.type("conv_1", "sent");
  await vi.advanceTimersByTimeAsync(500);
  drafts.clearSent("conv_1", { text: "sent", files: [] });
  drafts.settle(outboxMessage("sent", 1), "accepted", true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect([textOf(drafts), service.draft.content]).toEqual(["", ""]);
});
