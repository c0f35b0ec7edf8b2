// Tests of sign-in, of sessions and of signing in again: by password, by provider and on several devices. The page
// behind a dialog keeps its state.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleInBothColorSchemes } from "./axe";
import { composer, expectFocus, intercept, messages, refusal } from "./conversation-page";
import { Account, phone, url, BrowserWindow, withBrowser, holdUntilSessionEnds } from "./harness";

withBrowser();

const press = (page: Page, name: string | RegExp) => page.getByRole("button", { name, exact: true }).press("Enter");
const signInDialog = (page: Page) => page.getByRole("dialog", { name: "Sign in again" });
const safari =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1";

async function signIn(page: Page, { email, password }: Pick<Account, "email" | "password">): Promise<void> {
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.keyboard.press("Enter");
}

async function signOut(page: Page, name: string): Promise<void> {
  await press(page, `Account: ${name}`);
  await page.getByRole("menuitem", { name: "Sign out" }).press("Enter");
  await page.getByLabel("Email").waitFor();
}

const draftOf = async (account: Account, conversation: string) =>
  (await account.read<{ draft: { content: string } }>(`/conversations/${conversation}`)).draft.content;

/** Creates another session of the account and returns its cookie. */
async function anotherSession({ email, password }: Account): Promise<{ name: string; value: string; url: string }> {
  const response = await fetch(`${url}/auth/login`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Origin: url },
    body: JSON.stringify({ email, password }),
  });
  expect(response.status).toBe(200);
  const [name, value] = response.headers.getSetCookie()[0]!.split(";")[0]!.split("=");
  return { name: name!, value: value!, url };
}

const sessionStatus = async ({ name, value }: { name: string; value: string }) =>
  (await fetch(`${url}/auth/session`, { headers: { Cookie: `${name}=${value}` } })).status;

describe("sign-in with a password", () => {
  test("a new user registers, signs out and signs in again with the keyboard", async () => {
    const visit = await BrowserWindow.open("/");
    const { page } = visit;
    const email = `${crypto.randomUUID()}@turnstone.localhost`;
    await page.getByRole("button", { name: "Create account" }).press("Enter");
    await page.waitForURL((to) => to.hash === "#create-account");
    await page.goBack();
    await page.getByRole("button", { name: "Create account" }).press("Enter");
    await page.getByLabel("Name", { exact: true }).fill("Robin");
    await page.getByLabel("Email").fill(email);
    await page.getByLabel("Password", { exact: true }).fill("a calm tide at noon");
    await page.keyboard.press("Enter");
    await composer(page).waitFor();
    await signOut(page, "Robin");
    await signIn(page, { email, password: "wrong entirely" });
    await page.getByText("Wrong email or password.").waitFor();
    await expectAccessibleInBothColorSchemes(page, "a wrong password");
    await page.getByLabel("Password", { exact: true }).fill("a calm tide at noon");
    await page.keyboard.press("Enter");
    await composer(page).waitFor();
    await visit.close();
  });

  test("39 an error is shown next to its field, and a rate limit with a countdown", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/");
    const { page } = visit;
    await page.clock.install();
    await page.reload();
    await press(page, "Create account");
    await page.getByLabel("Name", { exact: true }).fill("Robin");
    await signIn(page, { email: account.email, password: "short" });
    await page.getByText("Use at least 8 characters.").waitFor();
    const password = page.getByLabel("Password", { exact: true });
    expect(await password.getAttribute("aria-invalid")).toBe("true");
    await expectFocus(password);
    await signIn(page, account);
    await page.getByText("An account with that email already exists.").waitFor();
    await expectFocus(page.getByLabel("Email"));
    await expectAccessibleInBothColorSchemes(page, "an address that is taken");
    await press(page, "Sign in");
    expect(await page.getByLabel("Email").inputValue()).toBe(account.email);

    await page.route(
      `${url}/auth/login`,
      (route) =>
        route.fulfill(refusal(429, "rate_limited", "Too many requests. Try again later.", { "Retry-After": "60" })),
      { times: 1 },
    );
    await signIn(page, account);
    await page.getByRole("alert").getByText("Too many attempts. Try again later.").waitFor();
    await page.getByRole("button", { name: /^Try again in \d+ seconds?$/ }).waitFor();
    await page.clock.fastForward(61_000);
    await page.getByRole("button", { name: "Sign in", exact: true }).press("Enter");
    await composer(page).waitFor();
    await visit.close();
  });

  test("a sign-out with unsent messages requires a confirmation", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await page.route(`${url}/chat`, (route) => route.abort());
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await page
      .getByText(/^Saved (here|on this device)/)
      .first()
      .waitFor();
    const dialog = page.getByRole("dialog", { name: "Sign out now?" });
    const openDialog = async () => {
      await press(page, "Account: Robin");
      await page.getByRole("menuitem", { name: "Sign out" }).press("Enter");
      await dialog.getByText(/^1 message hasn't been sent yet/).waitFor();
    };
    await openDialog();
    await expectAccessibleInBothColorSchemes(page, "the sign-out confirmation");
    await dialog.getByRole("button", { name: "Cancel" }).press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await page
      .getByText(/^Saved (here|on this device)/)
      .first()
      .waitFor();
    await openDialog();
    await dialog.getByRole("button", { name: "Sign out and discard" }).press("Enter");
    await page.getByLabel("Email").waitFor();
    expect(
      await account.read<{ data: unknown[] }>(`/conversations/${conversation}/messages`).catch(() => null),
    ).toBeNull();
    await visit.close();
  });

  test("36 a CSRF token that is no longer valid is renewed once, without a dialog", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await messages(page).nth(1).waitFor();
    await composer(page).fill("A");
    await expect.poll(() => draftOf(account, conversation)).toBe("A");

    // From now on the browser has another session, as if the user had signed in again in another tab.
    await visit.context.addCookies([await anotherSession(account)]);
    const refused: string[] = [];
    let renewals = 0;
    page.on("response", (response) => {
      if (response.status() === 403) refused.push(new URL(response.url()).pathname);
      if (response.url() === `${url}/auth/session`) renewals++;
    });
    await composer(page).fill("What is 6*7?");
    await expect.poll(() => draftOf(account, conversation)).toBe("What is 6*7?");
    await composer(page).press("Enter");
    await page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    expect(refused).toEqual([`/conversations/${conversation}/draft`]);
    expect(renewals).toBe(1);
    expect(await page.getByRole("dialog").count()).toBe(0);

    // If the renewed token is also refused, it is not renewed again and again.
    await expect.poll(() => draftOf(account, conversation)).toBe("");
    let requests = 0;
    await page.route(`${url}/conversations/${conversation}/draft`, (route) => {
      requests++;
      return route.fulfill(refusal(403, "csrf", "X-CSRF-Token is missing or wrong."));
    });
    await composer(page).fill("A thought");
    await page.getByText(/Saved on this device; syncs/).waitFor();
    expect(requests).toBe(2);
    await visit.close();
  });

  test("36 a request from before a new sign-in, refused after it, is sent again without another dialog", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await messages(page).nth(1).waitFor();
    const requests = await intercept(page, "POST", `${url}/chat`);
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await expect.poll(() => requests.length).toBe(1);
    const endSession = await holdUntilSessionEnds(visit, /\/draft$/);
    await composer(page).fill("And then?");
    await endSession();
    await signInDialog(page).getByLabel("Password", { exact: true }).fill(account.password);
    await page.keyboard.press("Enter");
    await signInDialog(page).waitFor({ state: "hidden" });
    await requests[0]!.fulfill(refusal(401, "unauthenticated", "There is no valid session. Sign in first."));
    await expect.poll(() => requests.length).toBe(2);
    expect(requests[1]!.request().headers()["idempotency-key"]).toBe(
      requests[0]!.request().headers()["idempotency-key"],
    );
    await requests[1]!.continue();
    await page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    expect(await signInDialog(page).count()).toBe(0);
    await visit.close();
  });

  test("36 an operation that needs a recent sign-in asks for the password; Cancel changes nothing", async () => {
    const account = await Account.register();
    const other = await anotherSession(account);
    const visit = await BrowserWindow.open("/settings", account);
    const { page } = visit;
    // The service would require it only ten minutes after the sign-in.
    let reauthenticated = false;
    page.on("response", (response) => {
      reauthenticated ||= response.url() === `${url}/auth/reauthenticate` && response.ok();
    });
    await page.route(`${url}/auth/sessions`, (route) => {
      if (reauthenticated || route.request().method() !== "DELETE") return route.continue();
      return route.fulfill(
        refusal(403, "reauth_required", "This needs a recent sign-in: POST /auth/reauthenticate first."),
      );
    });
    const dialog = page.getByRole("dialog", { name: "Confirm it's you" });
    const signOutOthers = page.getByRole("button", { name: "Sign out all other devices" });

    await signOutOthers.press("Enter");
    await expectFocus(dialog.getByLabel("Password", { exact: true }));
    await expectAccessibleInBothColorSchemes(page, "the password dialog");
    await dialog.getByRole("button", { name: "Cancel" }).press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await expectFocus(signOutOthers);
    expect(await sessionStatus(other)).toBe(200);

    await signOutOthers.press("Enter");
    await dialog.getByLabel("Password", { exact: true }).fill("wrong entirely");
    await page.keyboard.press("Enter");
    await dialog.getByText("Wrong password.").waitFor();
    await dialog.getByLabel("Password", { exact: true }).fill(account.password);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await page.getByRole("status").getByText("All other devices signed out.").waitFor();
    await signOutOthers.waitFor({ state: "hidden" });
    await page.getByRole("list", { name: "Signed-in devices" }).getByText("This device").waitFor();
    await expectFocus(page.getByRole("list", { name: "Signed-in devices" }));
    expect(await sessionStatus(other)).toBe(401);
    await visit.close();
  });

  test("36 a device that was signed out elsewhere shows the sign-in dialog and keeps the typed text", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const laptop = await BrowserWindow.open("/settings");
    await signIn(laptop.page, account);
    await laptop.page.getByRole("heading", { name: "Settings" }).waitFor();
    const mobile = await BrowserWindow.open(`/c/${conversation}`, undefined, { viewport: phone, userAgent: safari });
    await signIn(mobile.page, account);
    await messages(mobile.page).nth(1).waitFor();
    await composer(mobile.page).fill("What is 6*7");
    await expect.poll(() => draftOf(account, conversation)).toBe("What is 6*7");

    // The service ends the feed of the device at once. Until the text is typed, the device does not ask for it again.
    let typed = (): void => {};
    const typing = new Promise<void>((resolve) => (typed = resolve));
    await mobile.page.route(/\/events(\?|$)/, async (route) => {
      await typing;
      await route.continue();
    });
    await laptop.page.reload();
    await press(laptop.page, "Sign out Safari on iPhone");
    await laptop.page.getByRole("status").getByText("Device signed out.").waitFor();
    await laptop.page.getByRole("button", { name: "Sign out Safari on iPhone" }).waitFor({ state: "hidden" });
    expect(await signInDialog(laptop.page).count()).toBe(0);

    await composer(mobile.page).press("End");
    await composer(mobile.page).press("?");
    typed();
    const dialog = signInDialog(mobile.page);
    await dialog.getByText("Your session expired. Nothing here is lost.").waitFor();
    await expectAccessibleInBothColorSchemes(mobile.page, "signing in again");
    expect(await dialog.getByLabel("Email").inputValue()).toBe(account.email);
    await mobile.page.keyboard.press("Escape");
    await dialog.getByLabel("Password", { exact: true }).fill(account.password);
    await mobile.page.keyboard.press("Enter");
    await dialog.waitFor({ state: "hidden" });
    expect(await composer(mobile.page).inputValue()).toBe("What is 6*7?");
    await expectFocus(composer(mobile.page));
    await expect.poll(() => draftOf(account, conversation)).toBe("What is 6*7?");
    await composer(mobile.page).press("Enter");
    await mobile.page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await laptop.close();
    await mobile.close();
  });
});

describe("sign-in with a provider", () => {
  const providerLink = (page: Page) => page.getByRole("link", { name: "Continue with Harbour" });

  /** Fills in and submits the provider's page. */
  async function submitProviderPage(
    page: Page,
    name: string,
    email: string,
    choice: "Allow" | "Decline" = "Allow",
  ): Promise<void> {
    await page.getByRole("heading", { name: "Harbour" }).waitFor();
    expect(page.url().startsWith(url)).toBe(false);
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("E-mail").fill(email);
    await page.getByRole("button", { name: choice }).press("Enter");
  }

  /** Closes a window; the only requests to other sites must be those to the provider's page. */
  async function closeVisit(visit: BrowserWindow): Promise<void> {
    const external = visit.externalRequests.splice(0).map((to) => new URL(to));
    expect(external.length).toBeGreaterThan(0);
    expect(
      external.filter(
        ({ hostname, pathname }) =>
          hostname !== "127.0.0.1" || !["/authorize", "/answer", "/favicon.ico"].includes(pathname),
      ),
    ).toEqual([]);
    await visit.close();
  }

  test("a user signs in, signs in to the same account again, and sets a password", async () => {
    const email = `${crypto.randomUUID()}@turnstone.localhost`;
    const visit = await BrowserWindow.open("/settings");
    const { page } = visit;
    await providerLink(page).press("Enter");
    await submitProviderPage(page, "Ada", email);
    await page.getByRole("heading", { name: "Settings" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/settings");
    await page.getByText(email).waitFor();
    await page.getByRole("button", { name: "Change password" }).press("Enter");
    await page.getByLabel("New password").fill("a calm tide at noon");
    await page.keyboard.press("Enter");
    await page.getByText(/Password changed/).waitFor();
    const linked = page.getByRole("region", { name: "Linked sign-ins" });
    await linked.getByText(/^Linked \w+ \d/).waitFor();
    const log = page.getByRole("list", { name: "Security log" });
    await log.getByText("Account created").waitFor();
    await log
      .getByText(/from 127\.0\.0\.1$/)
      .first()
      .waitFor();
    await page.getByRole("link", { name: "New conversation" }).first().press("Enter");
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    const conversation = new URL(page.url()).pathname;

    await signOut(page, "Ada");
    await providerLink(page).press("Enter");
    await submitProviderPage(page, "Ada", email);
    await page.getByRole("button", { name: "Account: Ada" }).waitFor();
    await page.goto(url + conversation);
    await page
      .getByText(/\b42\b/)
      .first()
      .waitFor();

    await signOut(page, "Ada");
    await signIn(page, { email, password: "a calm tide at noon" });
    await page.getByRole("button", { name: "Account: Ada" }).waitFor();

    // The account has a password now, so the provider can be unlinked.
    await page.goto(`${url}/settings`);
    await linked.getByRole("button", { name: "Unlink: Harbour" }).press("Enter");
    await page
      .getByRole("dialog", { name: "Unlink Harbour?" })
      .getByRole("button", { name: "Unlink", exact: true })
      .press("Enter");
    await page.getByRole("status").getByText("Sign-in unlinked.").waitFor();
    await linked.getByText("No other service is linked to your account.").waitFor();
    await closeVisit(visit);
  });

  test("a failed sign-in is reported once with the reason, and other ways to sign in still work", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/");
    const { page } = visit;
    await providerLink(page).press("Enter");
    await submitProviderPage(page, "Ada", account.email, "Decline");
    await page.getByRole("alert").getByText("The other service didn't sign you in.").waitFor();
    expect(page.url()).toBe(`${url}/`);
    await page.reload();
    await providerLink(page).waitFor();
    expect(await page.getByText("The other service didn't sign you in.").count()).toBe(0);

    await page.goto(`${url}/auth/oidc/harbour/callback?state=another&code=any`);
    await page.getByRole("alert").getByText("That sign-in expired or started in another browser. Try again.").waitFor();
    await expectAccessibleInBothColorSchemes(page, "a refused sign-in");

    // The same e-mail address neither joins accounts nor blocks a sign-in.
    await providerLink(page).press("Enter");
    await submitProviderPage(page, "Eve", account.email);
    await page.getByRole("button", { name: "Account: Eve" }).waitFor();
    await signOut(page, "Eve");
    await signIn(page, account);
    await composer(page).waitFor();

    // A signed-in user stays signed in.
    await page.goto(`${url}/auth/oidc/harbour/start`);
    await submitProviderPage(page, "Eve", account.email, "Decline");
    await page.getByRole("alert").getByText("The other service didn't sign you in.").waitFor();
    await page.getByRole("button", { name: "Account: Robin" }).waitFor();
    await closeVisit(visit);
  });

  test("after the session has ended, a sign-in in another tab restores it, and the message is sent", async () => {
    const email = `${crypto.randomUUID()}@turnstone.localhost`;
    const visit = await BrowserWindow.open("/");
    const { page } = visit;
    await providerLink(page).press("Enter");
    await submitProviderPage(page, "Ada", email);
    await composer(page).fill("What is 6*7?");
    await page.waitForURL(/\/c\/conv_/);
    const endSession = await holdUntilSessionEnds(visit, /\/chat$/);
    await composer(page).press("Enter");
    await endSession();
    await signInDialog(page).waitFor();
    const [tab] = await Promise.all([
      visit.context.waitForEvent("page"),
      signInDialog(page).getByRole("link", { name: "Continue with Harbour" }).press("Enter"),
    ]);
    await submitProviderPage(tab, "Ada", email);
    await composer(tab).waitFor();
    await tab.close();
    // A headless browser sends no visibilitychange event when a tab becomes visible again.
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await signInDialog(page).waitFor({ state: "hidden" });
    await page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await closeVisit(visit);
  });
});
