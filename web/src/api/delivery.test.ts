import { describe, expect, test } from "vitest";
import { random } from "../turn/turn.fake";
import { FakeBrowser, FakeService, FakeTab, letter } from "./delivery.fake";
import { judge, outlivedItsKey, saidOf } from "./letter";
import { Refusal } from "./problem";

const three = () => [letter("one", 1, { fresh: { profile: null } }), letter("two", 2), letter("three", 3)];

/** Everything that was ever kept was taken by the service once, in its order, and nothing is left. */
function expectOnce({ browser }: FakeTab, what: string): void {
  const kept = ["one", "two", "three"].filter((text) => browser.kept.has(`key-${text}`));
  expect(browser.service.taken, what).toEqual(kept);
  expect([...browser.disk.keys()], what).toEqual([]);
}

/** Faults at random, but not for ever. */
function troubled(service: FakeService, seed: number): void {
  const next = random(seed);
  let left = 12;
  service.fault = () => (left-- > 0 ? ([null, "lost", "unanswered", "unavailable"] as const)[next(4)]! : null);
}

describe("the outbox", () => {
  test("a reload between any two steps sends each message exactly once", async () => {
    for (let fuse = 1, over = false; !over; fuse++) {
      const browser = new FakeBrowser(new FakeService());
      const first = new FakeTab(browser, fuse);
      for (const one of three()) first.work(first.delivery.take(one));
      await first.idle();
      over = !first.dead;
      const second = new FakeTab(browser);
      second.work(second.delivery.resume());
      await second.idle();
      expectOnce(second, `gone after ${fuse} steps`);
    }
  });

  test("so does a network that loses requests and answers, with reloads in between", async () => {
    for (let seed = 1; seed <= 250; seed++) {
      const next = random(seed);
      const browser = new FakeBrowser(new FakeService());
      troubled(browser.service, seed);
      let tab = new FakeTab(browser, 5 + next(60));
      for (const one of three()) tab.work(tab.delivery.take(one));
      await tab.idle();
      for (let reload = 0; reload < 4; reload++) {
        if (!tab.dead) tab.die();
        tab = new FakeTab(browser, reload === 3 ? Infinity : 5 + next(60));
        tab.work(tab.delivery.resume());
        await tab.idle();
      }
      expectOnce(tab, `seed ${seed}`);
    }
  });

  test("so do several tabs at once, whichever of them goes away", async () => {
    for (let fuse = 1; fuse <= 120; fuse++) {
      const browser = new FakeBrowser(new FakeService());
      troubled(browser.service, fuse);
      const writer = new FakeTab(browser, fuse);
      const others = [new FakeTab(browser), new FakeTab(browser)];
      for (const one of three()) writer.work(writer.delivery.take(one));
      await writer.idle();
      // A page that is loaded looks for what was left; one that stood by was told.
      if (writer.dead) others[0]!.work(others[0]!.delivery.resume());
      for (const other of others) await other.idle();
      expectOnce(others[0]!, `gone after ${fuse} steps`);
    }
  });

  test("one tab sends; the others stand by and ask nothing", async () => {
    const browser = new FakeBrowser(new FakeService());
    const [writer, ...others] = [new FakeTab(browser), new FakeTab(browser), new FakeTab(browser)];
    for (const one of three()) writer!.work(writer!.delivery.take(one));
    for (const tab of [writer!, ...others]) await tab.idle();
    expectOnce(writer!, "three tabs");
    expect(browser.service.requests).toBe(4); // the conversation, and each message
  });

  test("who sent a message learns the turn that it began, or the follow-up that it became", async () => {
    const browser = new FakeBrowser(new FakeService());
    const tab = new FakeTab(browser);
    const [one, two] = three();
    await tab.delivery.take(one!);
    browser.service.live = true;
    await tab.delivery.take(two!);
    expect(tab.accepted.map(({ began, parked }) => ({ began, parked }))).toEqual([
      { began: "turn_1", parked: null },
      { began: null, parked: "fu_2" },
    ]);
  });

  test("what was taken back while it waited is not sent", async () => {
    const browser = new FakeBrowser(new FakeService());
    browser.service.conversations.add("conv_1");
    const tab = new FakeTab(browser);
    browser.service.fault = () => {
      browser.disk.delete("key-one");
      return "unavailable";
    };
    await tab.delivery.take(letter("one", 1));
    expect(browser.service.requests).toBe(1);
    expect(browser.service.taken).toEqual([]);
    expect(browser.disk.size).toBe(0);
  });

  test("what is refused stays with its text, and holds up nothing", async () => {
    const browser = new FakeBrowser(new FakeService());
    browser.service.conversations.add("conv_1");
    const tab = new FakeTab(browser);
    let asked = 0;
    browser.service.fault = () => (asked++ === 0 ? "busy" : null);
    await Promise.all([tab.delivery.take(letter("one", 1)), tab.delivery.take(letter("two", 2))]);
    await tab.idle();
    expect(browser.disk.get("key-one")).toMatchObject({ text: "one", state: "refused", tried: null, trouble: { status: 409, code: "turn_in_progress" } });
    expect(browser.service.taken).toEqual(["two"]);
  });

  test("steering overtakes the messages that wait, and is sent once under its own name", async () => {
    const browser = new FakeBrowser(new FakeService());
    const tab = new FakeTab(browser);
    let answers = 0;
    browser.service.fault = () => (answers++ === 0 ? "unanswered" : null);
    await tab.delivery.take(letter("shorter", 1, { busy: "steer", turn: "turn_1" }));
    expect(browser.service.taken).toEqual(["shorter"]);
    expect(browser.service.requests).toBe(2);
  });

  test("nothing is sent for another account", async () => {
    const browser = new FakeBrowser(new FakeService());
    const tab = new FakeTab(browser);
    tab.account = "acct_2";
    await tab.delivery.take(letter("one", 1, { fresh: { profile: null } }));
    expect(browser.service.requests).toBe(0);
    expect(browser.disk.size).toBe(1);
  });

  test("one whose key the service has forgotten asks before it is sent again", async () => {
    const browser = new FakeBrowser(new FakeService());
    const tab = new FakeTab(browser);
    tab.now += 48 * 3_600_000;
    await tab.delivery.take(letter("one", 1, { tried: 1_000_000 }));
    expect(browser.service.requests).toBe(0);
    expect(browser.disk.get("key-one")).toMatchObject({ state: "refused", trouble: { code: "outcome_unknown" } });
  });

  test("over a limit it waits only if that is wanted, also across a reload", async () => {
    const browser = new FakeBrowser(new FakeService());
    browser.service.conversations.add("conv_1");
    const tab = new FakeTab(browser);
    browser.service.fault = () => "limited";
    await tab.delivery.take(letter("one", 1));
    expect(browser.disk.get("key-one")).toMatchObject({ state: "refused", trouble: { status: 429, until: tab.now + 5_000 } });
    expect(tab.pauses).toEqual([]);

    browser.service.fault = () => null;
    browser.disk.set("key-one", { ...browser.disk.get("key-one")!, state: "waiting", patient: true });
    const later = new FakeTab(browser);
    later.now = tab.now + 2_000;
    await later.delivery.resume();
    expect(later.pauses).toEqual([3_000]);
    expect(browser.service.taken).toEqual(["one"]);
  });
});

describe("what follows from a refusal", () => {
  const refused = (status: number, code: string, retryAfter = 0) => judge(letter("x", 1), new Refusal(status, code, "", null, retryAfter), 0, 0.5);

  test("what nobody answered is asked again; what was refused is not", () => {
    for (const [status, code] of [[0, "unreachable"], [500, "internal"], [502, "unknown"], [503, "unavailable"], [401, "unauthenticated"], [409, "idempotency_in_progress"]] as const) {
      expect(refused(status, code).again, `${status} ${code}`).toBe(true);
    }
    for (const [status, code] of [[400, "invalid_body"], [403, "origin"], [404, "not_found"], [409, "turn_in_progress"], [409, "conversation_head_moved"], [413, "too_large"], [422, "invalid"], [429, "rate_limited"], [429, "too_many_live_turns"]] as const) {
      expect(refused(status, code).again, `${status} ${code}`).toBe(false);
    }
  });

  test("the service is not asked before it said, and devices do not come all at once", () => {
    expect(refused(503, "unavailable", 7_000)).toEqual({ again: true, wait: 7_000 });
    const at = (dice: number) => judge(letter("x", 1), new Refusal(0, "unreachable", "", null, 0), 3, dice) as { wait: number };
    expect(at(0).wait).toBe(2_000);
    expect(at(1).wait).toBe(4_000);
    expect((judge(letter("x", 1), new Refusal(0, "unreachable", "", null, 0), 40, 1) as { wait: number }).wait).toBe(30_000);
  });

  test("what is wrong with a field is told before what is wrong with the whole", () => {
    expect(saidOf({ fields: [{ field: "body.input", message: "holds no text" }, { field: "body.profile", message: "is none" }], detail: "The request holds a wrong value." })).toBe("holds no text is none");
    expect(saidOf({ fields: [], detail: "The request holds a wrong value." })).toBe("The request holds a wrong value.");
  });

  test("a key lives for a day, and an untried letter for ever", () => {
    const day = 24 * 3_600_000;
    expect(outlivedItsKey(letter("x", 1), 10 * day)).toBe(false);
    expect(outlivedItsKey(letter("x", 1, { tried: 0 }), day)).toBe(true);
    expect(outlivedItsKey(letter("x", 1, { tried: 0 }), day / 2)).toBe(false);
  });
});
