// Tests of the token budget of a day: what is shown when it is used up, and that no text is lost. The figures of a budget are
// those of the service's configuration, so the test replaces its responses.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessibleOnDesktopAndPhone } from "./axe";
import { composer, fast, intercept, messages, refusal, send } from "./conversation-page";
import { Account, BrowserWindow, withBrowser } from "./harness";
import { openInApp } from "./in-app";

withBrowser();

/** The time at which the budget is available again, as the app displays it. */
const resetTime = () => {
  const midnight = (Math.floor(Date.now() / 86_400_000) + 1) * 86_400_000;
  return new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" }).format(midnight);
};
const secondsUntilReset = () => Math.ceil((86_400_000 - (Date.now() % 86_400_000)) / 1000);

test("37 a message that the budget refuses and an answer that it ends keep their text and say when tokens are available again", async () => {
  const account = await Account.register();
  const refused = await account.chat(`Which tide is this? ${fast(5)}`);
  const ended = await account.chat(`Which tide is this? ${fast(30)}`);
  const visit = await BrowserWindow.open(`/c/${refused}`, account);
  const { page } = visit;
  await expectRefusedMessage(page);
  await endSecondMessageByBudget(page);
  await openInApp(page, `/c/${ended}`);
  await expectEndedAnswer(page);
  await visit.close();
});

async function expectRefusedMessage(page: Page): Promise<void> {
  await messages(page).nth(1).waitFor();
  const requests = await intercept(page, "POST", /\/chat$/);
  await send(page, "And the next one?");
  await expect.poll(() => requests.length).toBe(1);
  const headers = { "Retry-After": String(secondsUntilReset()) };
  await requests[0]!.fulfill(refusal(429, "budget_reached", "The tokens of today are used up.", headers));
  const notice = page.getByRole("alert").filter({ hasText: "Not sent" });
  await expect
    .poll(() => notice.innerText())
    .toBe(`Not sent: you've used up today's tokens. They reset on ${resetTime()}.`);
  expect(await page.getByText(/again in/i).count(), "no countdown of hours").toBe(0);
  expect(await page.getByRole("button", { name: "Retry" }).count()).toBe(0);
  await expectAccessibleOnDesktopAndPhone(page, "a message that the budget refused");
  // Another text can be written and is stored meanwhile.
  await page.getByText("Edit", { exact: true }).press("Enter");
  await expect.poll(() => composer(page).inputValue()).toBe("And the next one?");
}

/** Returns the second message of a conversation as one that the budget ended. */
async function endSecondMessageByBudget(page: Page): Promise<void> {
  await page.route(/\/conversations\/conv_\w+\/messages/, async (route) => {
    const response = await route.fetch();
    const list = (await response.json()) as { data: object[] };
    const data = list.data.map((one, at) => (at === 1 ? { ...one, status: "incomplete" } : one));
    await route.fulfill({ response, json: { ...list, data } });
  });
  await page.route(/\/chat\/turns\/turn_\w+$/, async (route) => {
    const response = await route.fetch();
    const turn = (await response.json()) as object;
    await route.fulfill({ response, json: { ...turn, state: "incomplete", stop_reason: "budget_reached" } });
  });
}

async function expectEndedAnswer(page: Page): Promise<void> {
  const answer = messages(page).nth(1);
  const text = `You've used up today's tokens, so the answer stops here. They reset on ${resetTime()}.`;
  await page.getByText(text, { exact: true }).waitFor();
  expect((await answer.innerText()).length).toBeGreaterThan(text.length + 40);
  expect(await page.getByRole("button", { name: "Continue" }).count(), "nothing can be sent yet").toBe(0);
  await expectAccessibleOnDesktopAndPhone(page, "an answer that the budget ended");
  // On the next day the answer can be continued.
  await page.clock.install({ time: Date.now() + 86_400_000 });
  await page.reload();
  await page.getByText("Today's tokens were used up, so the answer stops here.", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Continue" }).waitFor();
}
