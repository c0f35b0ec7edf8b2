// Tests of the links in mails: a forgotten password is reset, and a new address is confirmed, changed and cancelled.
import { existsSync, readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessibleOnDesktopAndPhone } from "./axe";
import { composer, expectFocus } from "./conversation-page";
import { Account, BrowserWindow, url, withBrowser } from "./harness";

withBrowser();

const folder = process.env["TURNSTONE_MAILS"] ?? "";
const newAddress = () => `${crypto.randomUUID()}@turnstone.localhost`;

/** Returns the text of the n-th mail to an address, which the mail server of the suite writes to a file. */
async function mailTo(address: string, n: number): Promise<string> {
  const file = `${folder}/${address}.${n}`;
  await expect.poll(() => existsSync(file)).toBe(true);
  return readFileSync(file, "utf8");
}

/** Returns the path of the link in a mail, with the token in its fragment. */
function linkIn(mail: string): string {
  const link = /https?:\/\/\S+#mt1_\S+/.exec(mail)?.[0] ?? "";
  expect(link.startsWith(`${url}/`), mail).toBe(true);
  return link.slice(url.length);
}

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).press("Enter");
const password = (page: Page) => page.getByLabel("New password", { exact: true });

test("39 and 42 a forgotten password is reset by the link of a mail, with the keyboard", async () => {
  const account = await Account.register();
  const visit = await BrowserWindow.open("/");
  const { page } = visit;
  await page.getByLabel("Email").fill(account.email);
  await press(page, "Forgot password?");
  await expectFocus(page.getByLabel("Email"));
  expect(await page.getByLabel("Email").inputValue()).toBe(account.email);
  await press(page, "Send the link");
  await page.getByRole("status").getByText(`If an account here uses ${account.email} and a password`).waitFor();
  await expectAccessibleOnDesktopAndPhone(page, "the request for a link");
  const link = linkIn(await mailTo(account.email, 1));
  expect(link).toMatch(/^\/reset-password#/);

  // No request contains the token before the password is set, and none has a referrer.
  const requests: string[] = [];
  page.on("request", (request) => requests.push(`${request.url()} ${request.headers()["referer"] ?? ""}`));
  await page.goto(url + link);
  await expectFocus(password(page));
  await expectAccessibleOnDesktopAndPhone(page, "the page for a new password");
  expect(requests.filter((request) => request.includes("mt1_"))).toEqual([]);
  const othersStay = page.getByText("Passkeys and linked sign-ins keep working. Check them in the settings.");
  await othersStay.waitFor();
  await password(page).fill("password");
  await press(page, "Set password");
  await page.getByText("That password is easy to guess. Choose another.").waitFor();
  const next = `a calm tide ${crypto.randomUUID()}`;
  await password(page).fill(next);
  await press(page, "Set password");
  await page.getByText("Your password is changed. Sign in with the new one.").waitFor();
  await othersStay.waitFor(); // whoever had the account may have added one
  expect(new URL(page.url()).hash).toBe("");
  expect(await mailTo(account.email, 2)).toContain("was changed");

  await press(page, "Sign in");
  await page.getByLabel("Email").fill(account.email);
  await page.getByLabel("Password", { exact: true }).fill(next);
  await page.keyboard.press("Enter");
  await composer(page).waitFor();

  await page.goto(url + link);
  await password(page).fill(next);
  await press(page, "Set password");
  await page.getByText("This link no longer works.").waitFor();
  await page.getByLabel("Email").waitFor(); // another link can be requested here
  await expectAccessibleOnDesktopAndPhone(page, "a link that was used");
  await visit.close();
});

test("39 and 42 a new address is used once its link is opened, and the change can be sent again and cancelled", async () => {
  const account = await Account.register();
  const visit = await BrowserWindow.open("/settings", account);
  const { page } = visit;
  const section = page.getByRole("region", { name: "Account" });
  const pending = section.getByRole("group", { name: "New email, not confirmed" });
  const change = async (address: string) => {
    await section.getByRole("button", { name: "Change email" }).press("Enter");
    const dialog = page.getByRole("dialog", { name: "Change email" });
    await dialog.getByLabel("Email").fill(address);
    await page.keyboard.press("Enter");
    await pending.getByText(address).waitFor();
  };
  const first = newAddress();
  await change(first);
  await expectAccessibleOnDesktopAndPhone(page, "an address that is not confirmed");
  const earlier = linkIn(await mailTo(first, 1));
  expect(await mailTo(account.email, 1)).toContain("If this was not you");
  await pending.getByRole("button", { name: "Send again" }).press("Enter");
  const again = linkIn(await mailTo(first, 2));
  expect(again).not.toBe(earlier);
  await pending.getByRole("button", { name: "Cancel change" }).press("Enter");
  await pending.waitFor({ state: "hidden" });
  await section.getByText(account.email, { exact: true }).waitFor();

  const second = newAddress();
  await change(second);
  const elsewhere = await BrowserWindow.open("/"); // a device without a session
  await elsewhere.page.goto(url + again);
  await press(elsewhere.page, "Confirm address");
  await elsewhere.page.getByText("This link no longer works.").waitFor();
  await elsewhere.page.goto(url + linkIn(await mailTo(second, 1))); // in the same tab: only the fragment changes
  await elsewhere.page.getByRole("button", { name: "Confirm address" }).waitFor();
  await expectAccessibleOnDesktopAndPhone(elsewhere.page, "the page that confirms an address");
  await press(elsewhere.page, "Confirm address");
  await elsewhere.page.getByText(`Your email is now ${second}.`).waitFor();
  await section.getByText(second, { exact: true }).waitFor();
  await pending.waitFor({ state: "hidden" });
  await elsewhere.close();
  await visit.close();
});
