// Bad days as a person meets them: the answer goes on, nothing repeats, nothing is lost, and what is said about it is true.
import { describe, expect, test } from "vitest";
import { expectAccessibleInBothLooks } from "./axe";
import { composer, finished, held, heldText, messages, speaking, stored } from "./room";
import { Account, down, freeze, phone, thaw, up, url, Visit, withBrowser } from "./site";

withBrowser();

const reconnecting = "Reconnecting. The answer continues on the server.";

describe("whatever a test leaves behind", () => {
  for (const [left, leave] of [["killed", down], ["frozen", freeze]] as const) {
    test.fails(`a test may fail with the service ${left}`, async () => {
      await leave();
      throw new Error("on purpose");
    });

    test(`and the next finds it running though it was ${left}`, async () => {
      const account = await Account.register();
      const visit = await Visit.open(`/c/${await account.chat("What is 6*7?")}`, account);
      await visit.page.getByText(/\b42\b/).first().waitFor();
      await visit.close();
    });
  }
});

describe("hard days", () => {
  test("kill -9 while two tabs watch: both, and a phone that comes later, hold the same whole answer", async () => {
    const account = await Account.register();
    const answer = await held(150);
    const { conversation } = await account.begin(answer.text);
    const visit = await Visit.open(`/c/${conversation}`, account);
    const second = await visit.tab(`/c/${conversation}`);
    await expect.poll(async () => (await heldText(visit.page)).length).toBeGreaterThan(40);
    await expect.poll(async () => (await heldText(second)).length).toBeGreaterThan(40);
    const seen = await heldText(visit.page);
    await down();
    await visit.page.getByText(reconnecting).waitFor();
    await up();
    await answer.letGo();
    await finished(visit.page);
    await finished(second);
    const later = await Visit.open(`/c/${conversation}`, account, { viewport: phone });
    await finished(later.page);
    const whole = await heldText(visit.page);
    expect(whole.length).toBeGreaterThan(seen.length);
    await expect.poll(() => heldText(second)).toBe(whole);
    await expect.poll(() => heldText(later.page)).toBe(whole);
    const { data } = await account.read<{ data: { role: string; status: string }[] }>(`/conversations/${conversation}/messages`);
    expect(data.map((m) => `${m.role} ${m.status}`)).toEqual(["user complete", "assistant complete"]);
    await visit.close();
    await later.close();
  });

  test("what was sent while the service is away is kept through a reload and sent once", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open(`/c/${conversation}`, account);
    await composer(visit.page).fill("What is 6*7?");
    await down();
    await composer(visit.page).press("Enter");
    await visit.page.getByText(/Saved on this device/).first().waitFor();
    await up();
    await visit.page.reload();
    await visit.page.getByText(/\b42\b/).first().waitFor({ timeout: 30_000 });
    await finished(visit.page);
    const { data } = await account.read<{ data: { role: string }[] }>(`/conversations/${conversation}/messages`);
    expect(data.map((m) => m.role)).toEqual(["user", "assistant", "user", "assistant"]);
    await visit.close();
  });

  test("a network that goes away: a banner that tells the truth, typing goes on, the answer is whole when it is back", async () => {
    const account = await Account.register();
    const answer = await held(120);
    const { conversation } = await account.begin(answer.text);
    const visit = await Visit.open(`/c/${conversation}`, account);
    await expect.poll(async () => (await heldText(visit.page)).length).toBeGreaterThan(20);
    await visit.context.setOffline(true);
    await visit.page.getByText(/You are offline\. The answer continues on the server/).waitFor();
    await composer(visit.page).fill("And then?");
    await composer(visit.page).press("Enter");
    await visit.page.getByText(/Saved on this device/).first().waitFor();
    await visit.context.setOffline(false);
    await answer.letGo();
    await expect.poll(async () => (await account.read<{ data: unknown[] }>(`/conversations/${conversation}/messages`)).data.length, { timeout: 40_000 }).toBe(4);
    await finished(visit.page);
    await expect.poll(() => visit.page.locator("[data-message]").count()).toBe(4);
    await visit.close();
  });

  test("a second device sees the answer live, and may stop it", async () => {
    const account = await Account.register();
    const { conversation } = await account.begin((await held()).text);
    const desk = await Visit.open(`/c/${conversation}`, account);
    const pocket = await Visit.open(`/c/${conversation}`, account, { viewport: phone });
    await expect.poll(async () => (await heldText(pocket.page)).length).toBeGreaterThan(20);
    await pocket.page.getByRole("button", { name: "Stop", exact: true }).click();
    await finished(pocket.page);
    await finished(desk.page);
    await expect.poll(() => heldText(desk.page)).toBe(await heldText(pocket.page));
    await messages(desk.page).last().getByText(/stopped/i).first().waitFor();
    await desk.close();
    await pocket.close();
  });

  test("a session that ended is renewed in place, and what was typed is sent", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open(`/c/${conversation}`, account);
    await composer(visit.page).fill("What is 6*7?");
    await visit.context.clearCookies();
    await composer(visit.page).press("Enter");
    const dialog = visit.page.getByRole("dialog", { name: "Sign in again" });
    await dialog.getByLabel("Password", { exact: true }).fill(account.password);
    await dialog.getByRole("button", { name: "Sign in" }).click();
    await dialog.waitFor({ state: "hidden" });
    await visit.page.getByText(/\b42\b/).first().waitFor({ timeout: 30_000 });
    await visit.close();
  });

  test("over the limit: a countdown, sending is off, nothing is lost", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open(`/c/${conversation}`, account);
    await visit.page.route(`${url}/chat`, (route) =>
      route.fulfill({ status: 429, headers: { "Retry-After": "600", "Content-Type": "application/problem+json" }, body: JSON.stringify({ type: "about:blank", title: "Too Many Requests", status: 429, detail: "Too many requests. Try again later.", code: "rate_limited", request_id: "req_1" }) }),
    );
    await composer(visit.page).fill("What is 6*7?");
    await composer(visit.page).press("Enter");
    await visit.page.getByText(/You can send again in \d+ seconds/).first().waitFor();
    await expect.poll(async () => visit.page.getByText("What is 6*7?").count()).toBeGreaterThan(0);
    await visit.close();
  });

  test("a dependency that is down: what is kept is said, and it is sent when it is back", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open(`/c/${conversation}`, account);
    let refused = 0;
    await visit.page.route(`${url}/chat`, async (route) => {
      if (++refused > 2) return route.continue();
      await route.fulfill({ status: 503, headers: { "Retry-After": "1", "Content-Type": "application/problem+json" }, body: JSON.stringify({ type: "about:blank", title: "Service Unavailable", status: 503, detail: "The service cannot do this right now. Try again.", code: "unavailable", request_id: "req_1" }) });
    });
    await composer(visit.page).fill("What is 6*7?");
    await composer(visit.page).press("Enter");
    await visit.page.getByText(/Saved on this device/).first().waitFor();
    await visit.page.getByText(/\b42\b/).first().waitFor({ timeout: 30_000 });
    const { data } = await account.read<{ data: unknown[] }>(`/conversations/${conversation}/messages`);
    expect(data.length).toBe(4);
    await visit.close();
  });

  test("eight tabs with eight live answers: requests still get through", async () => {
    const account = await Account.register();
    const turns = await Promise.all(Array.from({ length: 3 }, async () => account.begin((await held()).text)));
    const visit = await Visit.open(`/c/${turns[0]!.conversation}`, account);
    const tabs = [visit.page];
    for (let i = 1; i < 8; i++) tabs.push(await visit.tab(`/c/${turns[i % turns.length]!.conversation}`));
    for (const tab of tabs) await expect.poll(async () => (await heldText(tab)).length, { timeout: 30_000 }).toBeGreaterThan(20);
    const fetched = await tabs[7]!.evaluate(() => fetch("/conversations?limit=1").then((answer) => answer.status));
    expect(fetched).toBe(200);
    for (const turn of turns) await account.ask("POST", "/chat/steering", { type: "cancel", turn_id: turn.turn });
    for (const tab of tabs) await finished(tab);
    await visit.close();
  });

  test("a connection that falls silent is given up, and the answer is whole in the end", async () => {
    const account = await Account.register();
    const answer = await held(150);
    const { conversation } = await account.begin(answer.text);
    const visit = await Visit.open(`/c/${conversation}`, account);
    const { page } = visit;
    await page.clock.install();
    const open = page.waitForResponse(/\/events\?after=\d+$/);
    await page.reload();
    await open;
    await speaking(page);
    await freeze();
    await page.clock.fastForward(21_000); // silence counts as loss after 20 s
    await page.getByText(reconnecting).waitFor();
    await expectAccessibleInBothLooks(page, "a lost connection");
    await thaw();
    await answer.letGo();
    await finished(page);
    expect((await stored(account, conversation)).map((message) => `${message.role} ${message.status}`)).toEqual(["user complete", "assistant complete"]);
    const seen = await heldText(page);
    await page.reload();
    await messages(page).nth(1).waitFor();
    await expect.poll(() => heldText(page)).toBe(seen);
    await visit.close();
  });
});
