import { describe, expect, test } from "vitest";
import { random } from "../turn/turn.fake";
import { FakeBrowser, FakeService, FakeTab, outboxMessage } from "./delivery.fake";
import { decideRetry, keyExpired, failureText } from "./outbox-message";
import { Refusal } from "./problem";

const three = () => [
  outboxMessage("one", 1, { newConversation: { profile: null } }),
  outboxMessage("two", 2),
  outboxMessage("three", 3),
];

/** Checks that the service accepted every message that was ever stored, once and in order, and that none is left. */
function expectOnce({ browser }: FakeTab, what: string): void {
  const stored = ["one", "two", "three"].filter((text) => browser.storedKeys.has(`key-${text}`));
  expect(browser.service.accepted, what).toEqual(stored);
  expect([...browser.disk.keys()], what).toEqual([]);
}

/** Injects random faults into the first twelve requests. */
function injectFaults(service: FakeService, seed: number): void {
  const next = random(seed);
  let left = 12;
  service.fault = () => (left-- > 0 ? ([null, "lost", "unanswered", "unavailable"] as const)[next(4)]! : null);
}

describe("the outbox", () => {
  test("a reload between any two steps sends each message exactly once", async () => {
    for (let fuse = 1, over = false; !over; fuse++) {
      const browser = new FakeBrowser(new FakeService());
      const first = new FakeTab(browser, fuse);
      for (const one of three()) first.track(first.delivery.enqueue(one));
      await first.idle();
      over = !first.crashed;
      const second = new FakeTab(browser);
      second.track(second.delivery.resume());
      await second.idle();
      expectOnce(second, `closed after ${fuse} steps`);
    }
  });

  test("each message is sent exactly once in spite of lost requests, lost responses and reloads", async () => {
    for (let seed = 1; seed <= 250; seed++) {
      const next = random(seed);
      const browser = new FakeBrowser(new FakeService());
      injectFaults(browser.service, seed);
      let tab = new FakeTab(browser, 5 + next(60));
      for (const one of three()) tab.track(tab.delivery.enqueue(one));
      await tab.idle();
      for (let reload = 0; reload < 4; reload++) {
        if (!tab.crashed) tab.crash();
        tab = new FakeTab(browser, reload === 3 ? Infinity : 5 + next(60));
        tab.track(tab.delivery.resume());
        await tab.idle();
      }
      expectOnce(tab, `seed ${seed}`);
    }
  });

  const replacing = () =>
    outboxMessage("one", 1, {
      ifBusy: "steer",
      targetTurn: "turn_1",
      replaces: { followUpID: "fu_0", version: 1, cancelled: false },
    });

  test("a follow-up that becomes a steering input is neither lost nor sent twice by a reload or a lost response", async () => {
    for (let fuse = 1, over = false; !over; fuse++) {
      for (const fault of [null, "lost", "unanswered", "unavailable"] as const) {
        const browser = new FakeBrowser(new FakeService());
        browser.service.fault = () => (browser.service.requests === 1 ? fault : null);
        const first = new FakeTab(browser, fuse);
        first.track(first.delivery.enqueue(replacing()));
        await first.idle();
        over = !first.crashed;
        const second = new FakeTab(browser);
        second.track(second.delivery.resume());
        await second.idle();
        const { accepted, followUp } = browser.service;
        const stored = browser.storedKeys.size > 0;
        expect([accepted, followUp.state], `closed after ${fuse} steps, ${fault}`).toEqual(
          stored ? [["one"], "cancelled"] : [[], "queued"],
        );
        expect([...browser.disk.keys()]).toEqual([]);
      }
    }
  });

  test("a follow-up that was started or changed in the meantime is not sent as a steering input", async () => {
    for (const state of ["started", "queued", "cancelled"]) {
      const browser = new FakeBrowser(new FakeService());
      browser.service.followUp = { ...browser.service.followUp, state, version: 2 };
      const tab = new FakeTab(browser);
      tab.track(tab.delivery.enqueue(replacing()));
      await tab.idle();
      expect(browser.service.accepted, state).toEqual([]);
      expect(browser.service.followUp.state).toBe(state);
      expect([...browser.disk.keys()]).toEqual([]);
    }
  });

  test("several tabs send each message exactly once, even if the tab that wrote them closes", async () => {
    for (let fuse = 1; fuse <= 120; fuse++) {
      const browser = new FakeBrowser(new FakeService());
      injectFaults(browser.service, fuse);
      const writer = new FakeTab(browser, fuse);
      const others = [new FakeTab(browser), new FakeTab(browser)];
      for (const one of three()) writer.track(writer.delivery.enqueue(one));
      await writer.idle();
      // A newly loaded page resumes the stored messages; the other open tab was notified of them.
      if (writer.crashed) others[0]!.track(others[0]!.delivery.resume());
      for (const other of others) await other.idle();
      expectOnce(others[0]!, `closed after ${fuse} steps`);
    }
  });

  test("one tab sends; the others wait and send no requests", async () => {
    const browser = new FakeBrowser(new FakeService());
    const [writer, ...others] = [new FakeTab(browser), new FakeTab(browser), new FakeTab(browser)];
    for (const one of three()) writer!.track(writer!.delivery.enqueue(one));
    for (const tab of [writer!, ...others]) await tab.idle();
    expectOnce(writer!, "three tabs");
    expect(browser.service.requests).toBe(4); // the conversation, and each message
  });

  test("an accepted message reports the turn that it started, or the follow-up that it became", async () => {
    const browser = new FakeBrowser(new FakeService());
    const tab = new FakeTab(browser);
    const [one, two] = three();
    await tab.delivery.enqueue(one!);
    browser.service.live = true;
    await tab.delivery.enqueue(two!);
    expect(tab.accepted.map(({ turnID, followUpID }) => ({ turnID, followUpID }))).toEqual([
      { turnID: "turn_1", followUpID: null },
      { turnID: null, followUpID: "fu_2" },
    ]);
  });

  test("a message that the user withdraws while it waits is not sent again", async () => {
    const browser = new FakeBrowser(new FakeService());
    browser.service.conversations.add("conv_1");
    const tab = new FakeTab(browser);
    browser.service.fault = () => {
      browser.disk.delete("key-one");
      return "unavailable";
    };
    await tab.delivery.enqueue(outboxMessage("one", 1));
    expect(browser.service.requests).toBe(1);
    expect(browser.service.accepted).toEqual([]);
    expect(browser.disk.size).toBe(0);
  });

  test("a message is sent again without the tools that the service does not have", async () => {
    for (let fuse = 1, over = false; !over; fuse++) {
      const browser = new FakeBrowser(new FakeService());
      browser.service.conversations.add("conv_1");
      browser.service.tools = ["calculate"];
      const bodies = new Set<string>();
      browser.replaced = ({ body }) => bodies.add(body);
      const first = new FakeTab(browser, fuse);
      const off = ["gone", "calculate", "removed"];
      first.track(first.delivery.enqueue(outboxMessage("one", 1, { tools: { web_search: false, off } })));
      await first.idle();
      over = !first.crashed;
      const second = new FakeTab(browser);
      second.track(second.delivery.resume());
      await second.idle();
      expect(browser.service.accepted, `closed after ${fuse} steps`).toEqual(
        browser.storedKeys.size > 0 ? ["one"] : [],
      );
      expect([...browser.disk.keys()]).toEqual([]);
      if (!over) continue;
      expect(first.forgotten).toEqual(["gone", "removed"]);
      expect(browser.service.requests).toBe(3);
      expect(JSON.parse([...bodies].at(-1)!)).toMatchObject({ tools: { web_search: false, off: ["calculate"] } });
    }
  });

  test("a refused message stays stored with its text and does not block the next one", async () => {
    const browser = new FakeBrowser(new FakeService());
    browser.service.conversations.add("conv_1");
    const tab = new FakeTab(browser);
    let requests = 0;
    browser.service.fault = () => (requests++ === 0 ? "busy" : null);
    await Promise.all([tab.delivery.enqueue(outboxMessage("one", 1)), tab.delivery.enqueue(outboxMessage("two", 2))]);
    await tab.idle();
    expect(browser.disk.get("key-one")).toMatchObject({
      text: "one",
      state: "refused",
      firstSentAt: null,
      failure: { status: 409, code: "turn_in_progress" },
    });
    expect(browser.service.accepted).toEqual(["two"]);
  });

  test("a steering input without a response is sent again and accepted once", async () => {
    const browser = new FakeBrowser(new FakeService());
    const tab = new FakeTab(browser);
    let requests = 0;
    browser.service.fault = () => (requests++ === 0 ? "unanswered" : null);
    await tab.delivery.enqueue(outboxMessage("shorter", 1, { ifBusy: "steer", targetTurn: "turn_1" }));
    expect(browser.service.accepted).toEqual(["shorter"]);
    expect(browser.service.requests).toBe(2);
  });

  test("nothing is sent for another account", async () => {
    const browser = new FakeBrowser(new FakeService());
    const tab = new FakeTab(browser);
    tab.account = "acct_2";
    await tab.delivery.enqueue(outboxMessage("one", 1, { newConversation: { profile: null } }));
    expect(browser.service.requests).toBe(0);
    expect(browser.disk.size).toBe(1);
  });

  test("a message of a temporary conversation creates it once, and is never sent to one that is not temporary", async () => {
    for (const existing of ["none", "temporary", "other"]) {
      const browser = new FakeBrowser(new FakeService());
      if (existing !== "none") browser.service.conversations.add("conv_1");
      if (existing === "temporary") browser.service.temporary.add("conv_1");
      await new FakeTab(browser).delivery.enqueue(
        outboxMessage("one", 1, { newConversation: { profile: null, temporary: true } }),
      );
      const other = existing === "other";
      expect([...browser.service.temporary], existing).toEqual(other ? [] : ["conv_1"]);
      expect(browser.service.accepted, existing).toEqual(other ? [] : ["one"]);
      if (other) expect(browser.disk.get("key-one")).toMatchObject({ state: "refused", failure: { status: 409 } });
    }
  });

  test("a message without a session waits for the next sign-in", async () => {
    const browser = new FakeBrowser(new FakeService());
    browser.service.conversations.add("conv_1");
    browser.service.fault = () => (browser.service.requests === 1 ? "signed_out" : null);
    const tab = new FakeTab(browser);
    const delivered = tab.delivery.enqueue(outboxMessage("one", 1));
    await tab.waitsForSignIn;
    expect([tab.lost, browser.service.requests]).toEqual([true, 1]);
    tab.signIn();
    await delivered;
    expect(browser.service.accepted).toEqual(["one"]);
  });

  test("a sign-in before a 401 is stored ends neither the session nor the delivery", async () => {
    const browser = new FakeBrowser(new FakeService());
    browser.service.conversations.add("conv_1");
    browser.service.fault = () => (browser.service.requests === 1 ? "signed_out" : null);
    const tab = new FakeTab(browser);
    browser.replaced = ({ failure }) => failure?.status === 401 && tab.signIn();
    await tab.delivery.enqueue(outboxMessage("one", 1));
    expect(tab.lost).toBe(false);
    expect(tab.pauses).toEqual([]);
    expect(browser.service.accepted).toEqual(["one"]);
  });

  test("a message whose key the service may have forgotten is not sent again until the user decides", async () => {
    const browser = new FakeBrowser(new FakeService());
    const tab = new FakeTab(browser);
    tab.now += 48 * 3_600_000;
    await tab.delivery.enqueue(outboxMessage("one", 1, { firstSentAt: 1_000_000 }));
    expect(browser.service.requests).toBe(0);
    expect(browser.disk.get("key-one")).toMatchObject({ state: "refused", failure: { code: "outcome_unknown" } });
  });

  test("a rate-limited message waits for the limit only if the user chose so, also across a reload", async () => {
    const browser = new FakeBrowser(new FakeService());
    browser.service.conversations.add("conv_1");
    const tab = new FakeTab(browser);
    browser.service.fault = () => "limited";
    await tab.delivery.enqueue(outboxMessage("one", 1));
    expect(browser.disk.get("key-one")).toMatchObject({
      state: "refused",
      failure: { status: 429, retryAt: tab.now + 5_000 },
    });
    expect(tab.pauses).toEqual([]);

    browser.service.fault = () => null;
    browser.disk.set("key-one", { ...browser.disk.get("key-one")!, state: "waiting", autoSend: true });
    const later = new FakeTab(browser);
    later.now = tab.now + 2_000;
    await later.delivery.resume();
    expect(later.pauses).toEqual([3_000]);
    expect(browser.service.accepted).toEqual(["one"]);
  });
});

describe("the decision after a refusal", () => {
  const refused = (status: number, code: string, retryAfter = 0) =>
    decideRetry(outboxMessage("x", 1), new Refusal(status, code, "", null, retryAfter), 0, 0.5);

  test("a request is repeated only if its outcome is unknown, the session has ended or its key is in use", () => {
    for (const [status, code] of [
      [0, "unreachable"],
      [500, "internal"],
      [502, "unknown"],
      [503, "unavailable"],
      [401, "unauthenticated"],
      [409, "idempotency_in_progress"],
    ] as const) {
      expect(refused(status, code).again, `${status} ${code}`).toBe(true);
    }
    for (const [status, code] of [
      [400, "invalid_body"],
      [403, "origin"],
      [404, "not_found"],
      [409, "turn_in_progress"],
      [409, "conversation_head_moved"],
      [413, "too_large"],
      [422, "invalid"],
      [429, "rate_limited"],
      [429, "too_many_live_turns"],
    ] as const) {
      expect(refused(status, code).again, `${status} ${code}`).toBe(false);
    }
  });

  test("a retry waits at least for Retry-After, and its pause is random and bounded", () => {
    expect(refused(503, "unavailable", 7_000)).toEqual({ again: true, wait: 7_000 });
    const at = (dice: number) =>
      decideRetry(outboxMessage("x", 1), new Refusal(0, "unreachable", "", null, 0), 3, dice) as { wait: number };
    expect(at(0).wait).toBe(2_000);
    expect(at(1).wait).toBe(4_000);
    expect(
      (decideRetry(outboxMessage("x", 1), new Refusal(0, "unreachable", "", null, 0), 40, 1) as { wait: number }).wait,
    ).toBe(30_000);
  });

  test("messages about fields are shown as sentences if the detail of the problem does not contain them", () => {
    expect(
      failureText({
        fields: [
          { field: "body.input", message: "holds no text" },
          { field: "body.profile", message: "is none" },
        ],
        detail: "The request holds a wrong value.",
      }),
    ).toBe("The input field holds no text. The profile field is none.");
    expect(
      failureText({
        fields: [{ field: "body.input", message: "must contain a text or a file" }],
        detail: "The input field must contain a text or a file.",
      }),
    ).toBe("The input field must contain a text or a file.");
    expect(failureText({ fields: [], detail: "The request holds a wrong value." })).toBe(
      "The request holds a wrong value.",
    );
  });

  test("a message that was sent expires with its key, and one that was never sent does not expire", () => {
    const day = 24 * 3_600_000;
    expect(keyExpired(outboxMessage("x", 1), 10 * day)).toBe(false);
    expect(keyExpired(outboxMessage("x", 1, { firstSentAt: 0 }), day)).toBe(true);
    expect(keyExpired(outboxMessage("x", 1, { firstSentAt: 0 }), day / 2)).toBe(false);
  });
});
