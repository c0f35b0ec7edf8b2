// Tests of the account section of the settings: the dialogs that change the name and the email address.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleOnDesktopAndPhone } from "./axe";
import { expectFocus, refusal, sidebar } from "./conversation-page";
import { Account, BrowserWindow, phone, url, withBrowser } from "./harness";

withBrowser();

const section = (page: Page) => page.getByRole("region", { name: "Account" });
const change = (page: Page, what: "name" | "email") => section(page).getByRole("button", { name: `Change ${what}` });
const dialogOf = (page: Page, what: "name" | "email") => page.getByRole("dialog", { name: `Change ${what}` });
const newAddress = () => `${crypto.randomUUID()}@turnstone.localhost`;

async function accountOf(account: Account): Promise<{ email: string; display_name: string }> {
  return (await account.read<{ account: { email: string; display_name: string } }>("/auth/session")).account;
}

describe("the account", () => {
  test("a name that is changed by keyboard is shown at once, here and on another device", async () => {
    const account = await Account.register();
    const other = await BrowserWindow.open("/", account);
    await other.page.getByText("Hi, Robin").or(sidebar(other.page).getByText("Robin")).first().waitFor();
    const visit = await BrowserWindow.open("/settings", account, { viewport: phone });
    const { page } = visit;
    await change(page, "name").press("Enter");
    const field = dialogOf(page, "name").getByLabel("Name");
    await expectFocus(field);
    expect(await field.inputValue()).toBe("Robin");
    await field.fill("   ");
    await field.press("Enter");
    await dialogOf(page, "name").getByText("Enter a name.").waitFor();
    await field.fill(" Robin of the Coast ");
    await field.press("Enter");
    await dialogOf(page, "name").waitFor({ state: "hidden" });
    await page.getByRole("status").getByText("Name changed.").waitFor();
    await section(page).getByText("Robin of the Coast", { exact: true }).waitFor();
    await expectFocus(change(page, "name"));
    expect((await accountOf(account)).display_name).toBe("Robin of the Coast");
    await other.page.getByText("Robin of the Coast").first().waitFor();
    await other.close();
    await visit.close();
  });

  test("a changed address is shown, and signs in", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/settings", account);
    const { page } = visit;
    await change(page, "email").press("Enter");
    const field = dialogOf(page, "email").getByLabel("Email");
    await expectFocus(field);
    expect(await field.inputValue()).toBe(account.email);
    const address = newAddress();
    await field.fill(address);
    await field.press("Enter");
    await page.getByRole("status").getByText("Email changed.").waitFor();
    await section(page).getByText(address, { exact: true }).waitFor();
    await visit.close();
    const next = await BrowserWindow.open("/settings");
    await next.page.getByLabel("Email").fill(address);
    await next.page.getByLabel("Password", { exact: true }).fill(account.password);
    await next.page.getByRole("button", { name: "Sign in", exact: true }).click();
    await section(next.page).getByText(address, { exact: true }).waitFor();
    await next.close();
  });

  test("39 a taken and a malformed address are refused at the field; Cancel changes nothing", async () => {
    const account = await Account.register();
    const taken = await Account.register();
    const visit = await BrowserWindow.open("/settings", account);
    const { page } = visit;
    await change(page, "email").press("Enter");
    const dialog = dialogOf(page, "email");
    const field = dialog.getByLabel("Email");
    for (const [address, problem] of [
      [taken.email, "That email already has an account."],
      ["two..dots@turnstone.localhost", "Enter a full email address, like name@example.com."],
    ] as const) {
      await field.fill(address);
      await field.press("Enter");
      await dialog.getByText(problem).waitFor();
      await expectFocus(field);
      expect(await field.inputValue()).toBe(address);
    }
    await dialog.getByRole("button", { name: "Cancel" }).press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await expectFocus(change(page, "email"));
    await section(page).getByText(account.email, { exact: true }).waitFor();
    expect((await accountOf(account)).email).toBe(account.email);
    await visit.close();
  });

  test("36 an address is changed after the password was confirmed", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/settings", account);
    const { page } = visit;
    // The service would require it only ten minutes after the sign-in.
    let confirmed = false;
    page.on("response", (response) => {
      confirmed ||= response.url() === `${url}/auth/reauthenticate` && response.ok();
    });
    await page.route(`${url}/account/email`, (route) =>
      confirmed ? route.continue() : route.fulfill(refusal(403, "reauth_required")),
    );
    const address = newAddress();
    await change(page, "email").press("Enter");
    await dialogOf(page, "email").getByLabel("Email").fill(address);
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Confirm it's you" });
    await dialog.getByLabel("Password", { exact: true }).fill(account.password);
    await page.keyboard.press("Enter");
    await section(page).getByText(address, { exact: true }).waitFor();
    await dialogOf(page, "email").waitFor({ state: "hidden" });
    await visit.close();
  });

  test("42 the dialogs are accessible on a desktop and on a phone", async () => {
    const visit = await BrowserWindow.open("/settings", await Account.register());
    const { page } = visit;
    for (const what of ["name", "email"] as const) {
      await change(page, what).press("Enter");
      await dialogOf(page, what).waitFor();
      await expectAccessibleOnDesktopAndPhone(page, `the dialog to change the ${what}`);
      await page.keyboard.press("Escape");
      await dialogOf(page, what).waitFor({ state: "hidden" });
    }
    await visit.close();
  });
});
