// Tests of the account section of the settings: the dialogs that change the name and the email address.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessibleOnDesktopAndPhone } from "./axe";
import { expectFocus, refusal } from "./conversation-page";
import { Account, BrowserWindow, phone, url, withBrowser } from "./harness";

withBrowser();

const section = (page: Page) => page.getByRole("region", { name: "Account" });
const change = (page: Page, what: "name" | "email") => section(page).getByRole("button", { name: `Change ${what}` });
const dialogOf = (page: Page, what: "name" | "email") => page.getByRole("dialog", { name: `Change ${what}` });
const newAddress = () => `${crypto.randomUUID()}@turnstone.localhost`;

async function accountOf(account: Account): Promise<{ email: string; display_name: string }> {
  return (await account.read<{ account: { email: string; display_name: string } }>("/auth/session")).account;
}

test("36, 39 and 42 the address and the name are changed by keyboard, and other devices show it", async () => {
  const account = await Account.register();
  const visit = await BrowserWindow.open("/settings", account);
  const { page } = visit;
  await expectAccessibleDialogs(page);
  await expectRefusedAddresses(page, account);
  await changeAddressWithPassword(page, account);
  const address = await changeAddress(page);
  const other = await BrowserWindow.open("/settings");
  await signIn(other.page, address, account.password);
  await page.setViewportSize(phone);
  await changeName(page, account, other.page);
  await other.close();
  await visit.close();
});

async function expectAccessibleDialogs(page: Page): Promise<void> {
  for (const what of ["name", "email"] as const) {
    await change(page, what).press("Enter");
    await dialogOf(page, what).waitFor();
    await expectAccessibleOnDesktopAndPhone(page, `the dialog to change the ${what}`);
    await page.keyboard.press("Escape");
    await dialogOf(page, what).waitFor({ state: "hidden" });
  }
}

/** A taken and a malformed address are refused at the field; Cancel changes nothing. */
async function expectRefusedAddresses(page: Page, account: Account): Promise<void> {
  const taken = await Account.register();
  await change(page, "email").press("Enter");
  const dialog = dialogOf(page, "email");
  const field = dialog.getByLabel("Email");
  for (const [address, problem] of [
    [taken.email, "An account with that email already exists."],
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
}

/** Changes the address where the service requires a recent sign-in, as it would ten minutes after the sign-in. */
async function changeAddressWithPassword(page: Page, account: Account): Promise<void> {
  let confirmed = false;
  page.on("response", (response) => {
    confirmed ||= response.url() === `${url}/auth/reauthenticate` && response.ok();
  });
  await page.route(`${url}/account/email`, (route) =>
    confirmed ? route.continue() : route.fulfill(refusal(403, "reauth_required")),
  );
  const address = newAddress();
  await change(page, "email").press("Enter");
  const field = dialogOf(page, "email").getByLabel("Email");
  await expectFocus(field);
  expect(await field.inputValue()).toBe(account.email);
  await field.fill(address);
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Confirm it's you" });
  await dialog.getByLabel("Password", { exact: true }).fill(account.password);
  await page.keyboard.press("Enter");
  await section(page).getByText(address, { exact: true }).waitFor();
  await dialogOf(page, "email").waitFor({ state: "hidden" });
  await page.unrouteAll();
}

async function changeAddress(page: Page): Promise<string> {
  await change(page, "email").press("Enter");
  const field = dialogOf(page, "email").getByLabel("Email");
  await expectFocus(field);
  const address = newAddress();
  await field.fill(address);
  await field.press("Enter");
  await section(page).getByText(address, { exact: true }).waitFor();
  await page.getByRole("status").getByText("Email changed.").first().waitFor();
  return address;
}

/** Signs in with the changed address. */
async function signIn(page: Page, address: string, password: string): Promise<void> {
  await page.getByLabel("Email").fill(address);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await section(page).getByText(address, { exact: true }).waitFor();
}

/** A name that is changed by keyboard is shown at once, here and on another device. */
async function changeName(page: Page, account: Account, other: Page): Promise<void> {
  await section(other).getByText("Robin", { exact: true }).waitFor();
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
  await section(other).getByText("Robin of the Coast", { exact: true }).waitFor();
}
