// Coming in, staying in and being asked again: by a password, by a provider, on several devices. What lies beneath stays.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleInBothLooks } from "./axe";
import { composer, expectFocus, intercept, messages, refusal } from "./room";
import { Account, phone, url, Visit, withBrowser } from "./site";

withBrowser();

const press = (page: Page, name: string | RegExp) => page.getByRole("button", { name, exact: true }).press("Enter");
const again = (page: Page) => page.getByRole("dialog", { name: "Sign in again" });
const safari = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1";

async function signIn(page: Page, { email, password }: Pick<Account, "email" | "password">): Promise<void> {
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.keyboard.press("Enter");
}

async function signOut(page: Page, name: string): Promise<void> {
  await press(page, `Account: ${name}`);
  await page.getByRole("menuitem", { name: "Sign out" }).press("Enter");
  await page.getByLabel("E-mail").waitFor();
}

const draftOf = async (account: Account, conversation: string) => (await account.read<{ draft: { content: string } }>(`/conversations/${conversation}`)).draft.content;

/** Another session of the account: its cookie. */
async function anotherSession({ email, password }: Account): Promise<{ name: string; value: string; url: string }> {
  const answer = await fetch(`${url}/auth/login`, { method: "POST", headers: { "Content-Type": "application/json", Origin: url }, body: JSON.stringify({ email, password }) });
  expect(answer.status).toBe(200);
  const [name, value] = answer.headers.getSetCookie()[0]!.split(";")[0]!.split("=");
  return { name: name!, value: value!, url };
}

const standing = async ({ name, value }: { name: string; value: string }) => (await fetch(`${url}/auth/session`, { headers: { Cookie: `${name}=${value}` } })).status;

describe("by a password", () => {
  test("a newcomer makes an account, signs out and in again, by the keyboard", async () => {
    const visit = await Visit.open("/");
    const { page } = visit;
    const email = `${crypto.randomUUID()}@turnstone.localhost`;
    await page.getByRole("button", { name: "Create an account" }).press("Enter");
    await page.getByLabel("Name", { exact: true }).fill("Robin");
    await page.getByLabel("E-mail").fill(email);
    await page.getByLabel("Password", { exact: true }).fill("a calm tide at noon");
    await page.keyboard.press("Enter");
    await composer(page).waitFor();
    await signOut(page, "Robin");
    await signIn(page, { email, password: "wrong entirely" });
    await page.getByText("The e-mail address or the password is wrong.").waitFor();
    await expectAccessibleInBothLooks(page, "a wrong password");
    await page.getByLabel("Password", { exact: true }).fill("a calm tide at noon");
    await page.keyboard.press("Enter");
    await composer(page).waitFor();
    await visit.close();
  });

  test("39 what is wrong is said beside its field, and a limit is counted down", async () => {
    const account = await Account.register();
    const visit = await Visit.open("/");
    const { page } = visit;
    await page.clock.install();
    await page.reload();
    await press(page, "Create an account");
    await page.getByLabel("Name", { exact: true }).fill("Robin");
    await signIn(page, { email: account.email, password: "short" });
    await page.getByText("Use at least 8 characters.").waitFor();
    const password = page.getByLabel("Password", { exact: true });
    expect(await password.getAttribute("aria-invalid")).toBe("true");
    await expectFocus(password);
    await signIn(page, account);
    await page.getByText("There is an account with this address already.").waitFor();
    await expectFocus(page.getByLabel("E-mail"));
    await expectAccessibleInBothLooks(page, "an address that is taken");
    await press(page, "Sign in");
    expect(await page.getByLabel("E-mail").inputValue()).toBe(account.email);

    await page.route(`${url}/auth/login`, (route) => route.fulfill(refusal(429, "rate_limited", "Too many requests. Try again later.", { "Retry-After": "60" })), { times: 1 });
    await signIn(page, account);
    await page.getByRole("alert").getByText("Too many tries. Wait a little.").waitFor();
    await page.getByRole("button", { name: /^Again in \d+ seconds?$/ }).waitFor();
    await page.clock.fastForward(61_000);
    await page.getByRole("button", { name: "Sign in", exact: true }).press("Enter");
    await composer(page).waitFor();
    await visit.close();
  });

  test("who signs out while something was not sent is asked", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open(`/c/${conversation}`, account);
    const { page } = visit;
    await page.route(`${url}/chat`, (route) => route.abort());
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await page.getByText(/Saved on this device/).first().waitFor();
    const dialog = page.getByRole("dialog", { name: "Sign out now?" });
    const ask = async () => {
      await press(page, "Account: Robin");
      await page.getByRole("menuitem", { name: "Sign out" }).press("Enter");
      await dialog.getByText(/^One message has not been sent yet/).waitFor();
    };
    await ask();
    await expectAccessibleInBothLooks(page, "a question before signing out");
    await dialog.getByRole("button", { name: "Cancel" }).press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await page.getByText(/Saved on this device/).first().waitFor();
    await ask();
    await dialog.getByRole("button", { name: "Sign out and discard" }).press("Enter");
    await page.getByLabel("E-mail").waitFor();
    expect((await account.read<{ data: unknown[] }>(`/conversations/${conversation}/messages`).catch(() => null))).toBeNull();
    await visit.close();
  });

  test("36 a token of the page that is no longer good is renewed once, and nobody is asked", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open(`/c/${conversation}`, account);
    const { page } = visit;
    await messages(page).nth(1).waitFor();
    await composer(page).fill("A");
    await expect.poll(() => draftOf(account, conversation)).toBe("A");

    // The browser has another session from now on, as after signing in again in another tab.
    await visit.context.addCookies([await anotherSession(account)]);
    const refused: string[] = [];
    let renewed = 0;
    page.on("response", (answer) => {
      if (answer.status() === 403) refused.push(new URL(answer.url()).pathname);
      if (answer.url() === `${url}/auth/session`) renewed++;
    });
    await composer(page).fill("What is 6*7?");
    await expect.poll(() => draftOf(account, conversation)).toBe("What is 6*7?");
    await composer(page).press("Enter");
    await page.getByText(/\b42\b/).first().waitFor();
    expect(refused).toEqual([`/conversations/${conversation}/draft`]);
    expect(renewed).toBe(1);
    expect(await page.getByRole("dialog").count()).toBe(0);

    // One that is refused all the same is not asked for ever.
    await expect.poll(() => draftOf(account, conversation)).toBe("");
    let asked = 0;
    await page.route(`${url}/conversations/${conversation}/draft`, (route) => {
      asked++;
      return route.fulfill(refusal(403, "csrf", "X-CSRF-Token is missing or wrong."));
    });
    await composer(page).fill("A thought");
    await page.getByText(/This draft is on this device only/).waitFor();
    expect(asked).toBe(2);
    await visit.close();
  });

  test("36 what was under way while one signed in again, and is refused after, is sent again, and nobody is asked twice", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open(`/c/${conversation}`, account);
    const { page } = visit;
    await messages(page).nth(1).waitFor();
    const asked = await intercept(page, "POST", `${url}/chat`);
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await expect.poll(() => asked.length).toBe(1);
    await visit.context.clearCookies();
    await composer(page).fill("And then?");
    await again(page).getByLabel("Password", { exact: true }).fill(account.password);
    await page.keyboard.press("Enter");
    await again(page).waitFor({ state: "hidden" });
    await asked[0]!.fulfill(refusal(401, "unauthenticated", "There is no valid session. Sign in first."));
    await expect.poll(() => asked.length).toBe(2);
    expect(asked[1]!.request().headers()["idempotency-key"]).toBe(asked[0]!.request().headers()["idempotency-key"]);
    await asked[1]!.continue();
    await page.getByText(/\b42\b/).first().waitFor();
    expect(await again(page).count()).toBe(0);
    await visit.close();
  });

  test("36 what needs a recent sign-in asks for the password in place; giving up changes nothing", async () => {
    const account = await Account.register();
    const other = await anotherSession(account);
    const visit = await Visit.open("/settings", account);
    const { page } = visit;
    // The service asks for it ten minutes after a sign-in.
    let proven = false;
    page.on("response", (answer) => void (proven ||= answer.url() === `${url}/auth/reauthenticate` && answer.ok()));
    await page.route(`${url}/auth/sessions`, (route) => {
      if (proven || route.request().method() !== "DELETE") return route.continue();
      return route.fulfill(refusal(403, "reauth_required", "This needs a recent sign-in: POST /auth/reauthenticate first."));
    });
    const dialog = page.getByRole("dialog", { name: "Confirm that it is you" });
    const endOthers = page.getByRole("button", { name: "Sign out all other devices" });

    await endOthers.press("Enter");
    await expectFocus(dialog.getByLabel("Password", { exact: true }));
    await expectAccessibleInBothLooks(page, "a question for the password");
    await dialog.getByRole("button", { name: "Cancel" }).press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await expectFocus(endOthers);
    expect(await standing(other)).toBe(200);

    await endOthers.press("Enter");
    await dialog.getByLabel("Password", { exact: true }).fill("wrong entirely");
    await page.keyboard.press("Enter");
    await dialog.getByText("This is not your password.").waitFor();
    await dialog.getByLabel("Password", { exact: true }).fill(account.password);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await page.getByRole("status").getByText("All other devices were signed out.").waitFor();
    await endOthers.waitFor({ state: "hidden" });
    await page.getByText("This device, in use now").waitFor();
    await expectFocus(page.getByRole("list", { name: "Signed-in devices" }));
    expect(await standing(other)).toBe(401);
    await visit.close();
  });

  test("36 a device that is signed out from another one is asked to sign in again, and keeps what is written there", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const desk = await Visit.open("/settings");
    await signIn(desk.page, account);
    await desk.page.getByRole("heading", { name: "Settings" }).waitFor();
    const pocket = await Visit.open(`/c/${conversation}`, undefined, { viewport: phone, userAgent: safari });
    await signIn(pocket.page, account);
    await messages(pocket.page).nth(1).waitFor();
    await composer(pocket.page).fill("What is 6*7");
    await expect.poll(() => draftOf(account, conversation)).toBe("What is 6*7");

    await desk.page.reload();
    await press(desk.page, "Sign out Safari on iPhone");
    await desk.page.getByRole("status").getByText("The device was signed out.").waitFor();
    await desk.page.getByRole("button", { name: "Sign out Safari on iPhone" }).waitFor({ state: "hidden" });
    expect(await again(desk.page).count()).toBe(0);

    await composer(pocket.page).press("End");
    await composer(pocket.page).press("?");
    const dialog = again(pocket.page);
    await dialog.getByText("Your session has ended. Everything beneath stays as it is.").waitFor();
    await expectAccessibleInBothLooks(pocket.page, "signing in again");
    expect(await dialog.getByLabel("E-mail").inputValue()).toBe(account.email);
    await pocket.page.keyboard.press("Escape");
    await dialog.getByLabel("Password", { exact: true }).fill(account.password);
    await pocket.page.keyboard.press("Enter");
    await dialog.waitFor({ state: "hidden" });
    expect(await composer(pocket.page).inputValue()).toBe("What is 6*7?");
    await expectFocus(composer(pocket.page));
    await expect.poll(() => draftOf(account, conversation)).toBe("What is 6*7?");
    await composer(pocket.page).press("Enter");
    await pocket.page.getByText(/\b42\b/).first().waitFor();
    await desk.close();
    await pocket.close();
  });
});

describe("by a provider", () => {
  const link = (page: Page) => page.getByRole("link", { name: "Continue with Harbour" });

  /** Answers the provider on its own page. */
  async function answer(page: Page, name: string, email: string, how: "Allow" | "Decline" = "Allow"): Promise<void> {
    await page.getByRole("heading", { name: "Harbour" }).waitFor();
    expect(page.url().startsWith(url)).toBe(false);
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("E-mail").fill(email);
    await page.getByRole("button", { name: how }).press("Enter");
  }

  /** Ends a visit during which nothing but the provider's page was asked of anybody else. */
  async function leave(visit: Visit): Promise<void> {
    const beyond = visit.outside.splice(0).map((to) => new URL(to));
    expect(beyond.length).toBeGreaterThan(0);
    expect(beyond.filter(({ hostname, pathname }) => hostname !== "127.0.0.1" || !["/authorize", "/answer", "/favicon.ico"].includes(pathname))).toEqual([]);
    await visit.close();
  }

  test("somebody comes in by it, comes back to the same account, and gives it a password", async () => {
    const email = `${crypto.randomUUID()}@turnstone.localhost`;
    const visit = await Visit.open("/settings");
    const { page } = visit;
    await link(page).press("Enter");
    await answer(page, "Ada", email);
    await page.getByRole("heading", { name: "Settings" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/settings");
    await page.getByText(email).waitFor();
    await page.getByLabel("New password").fill("a calm tide at noon");
    await page.keyboard.press("Enter");
    await page.getByText(/Your password was changed/).waitFor();
    await page.getByRole("link", { name: "New conversation" }).first().press("Enter");
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await page.getByText(/\b42\b/).first().waitFor();
    const conversation = new URL(page.url()).pathname;

    await signOut(page, "Ada");
    await link(page).press("Enter");
    await answer(page, "Ada", email);
    await page.getByRole("button", { name: "Account: Ada" }).waitFor();
    await page.goto(url + conversation);
    await page.getByText(/\b42\b/).first().waitFor();

    await signOut(page, "Ada");
    await signIn(page, { email, password: "a calm tide at noon" });
    await page.getByRole("button", { name: "Account: Ada" }).waitFor();
    await leave(visit);
  });

  test("who is not signed in by it is told why, once, and may come in another way", async () => {
    const account = await Account.register();
    const visit = await Visit.open("/");
    const { page } = visit;
    await link(page).press("Enter");
    await answer(page, "Ada", account.email, "Decline");
    await page.getByRole("alert").getByText("The provider did not sign you in.").waitFor();
    expect(page.url()).toBe(`${url}/`);
    await page.reload();
    await link(page).waitFor();
    expect(await page.getByText("The provider did not sign you in.").count()).toBe(0);

    await page.goto(`${url}/auth/oidc/harbour/callback?state=another&code=any`);
    await page.getByRole("alert").getByText("This sign-in was not begun here, or took too long. Begin again.").waitFor();
    await expectAccessibleInBothLooks(page, "a refused sign-in");

    // The same address makes nobody the same person, and keeps nobody out.
    await link(page).press("Enter");
    await answer(page, "Eve", account.email);
    await page.getByRole("button", { name: "Account: Eve" }).waitFor();
    await signOut(page, "Eve");
    await signIn(page, account);
    await composer(page).waitFor();

    // Who is in already stays in.
    await page.goto(`${url}/auth/oidc/harbour/start`);
    await answer(page, "Eve", account.email, "Decline");
    await page.getByRole("alert").getByText("The provider did not sign you in.").waitFor();
    await page.getByRole("button", { name: "Account: Robin" }).waitFor();
    await leave(visit);
  });

  test("a session that ended is renewed by it in a tab beside, and what was written is sent", async () => {
    const email = `${crypto.randomUUID()}@turnstone.localhost`;
    const visit = await Visit.open("/");
    const { page } = visit;
    await link(page).press("Enter");
    await answer(page, "Ada", email);
    await composer(page).fill("What is 6*7?");
    await page.waitForURL(/\/c\/conv_/);
    await visit.context.clearCookies();
    await composer(page).press("Enter");
    await again(page).waitFor();
    const [beside] = await Promise.all([visit.context.waitForEvent("page"), again(page).getByRole("link", { name: "Continue with Harbour" }).press("Enter")]);
    await answer(beside, "Ada", email);
    await composer(beside).waitFor();
    await beside.close();
    // A headless browser does not tell a page that it is looked at again.
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await again(page).waitFor({ state: "hidden" });
    await page.getByText(/\b42\b/).first().waitFor();
    await leave(visit);
  });
});
