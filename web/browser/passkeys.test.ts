// Tests of passkeys with Chromium's virtual authenticator.
import type { CDPSession, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleInBothColorSchemes } from "./axe";
import { expectFocus } from "./conversation-page";
import { Account, BrowserWindow, phone, url, withBrowser } from "./harness";

withBrowser();

/** Browsers allow no passkeys at an IP address, so these pages are at localhost. */
const local = url.replace("//127.0.0.1:", "//localhost:");

const section = (page: Page) => page.getByRole("region", { name: "Passkeys" });
const dialogOf = (page: Page, title: string) => page.getByRole("dialog", { name: title });

/** A window at localhost with a virtual authenticator, which verifies its user unless told. */
class PasskeyWindow {
  private constructor(
    readonly visit: BrowserWindow,
    private readonly session: CDPSession,
    private readonly authenticatorId: string,
  ) {}

  get page(): Page {
    return this.visit.page;
  }

  static async open(options = {}): Promise<PasskeyWindow> {
    const visit = await BrowserWindow.open("/health", undefined, options, local);
    const session = await visit.context.newCDPSession(visit.page);
    await session.send("WebAuthn.enable");
    const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    return new PasskeyWindow(visit, session, authenticatorId);
  }

  async signIn(account: Account, path: string): Promise<void> {
    await this.page.goto(local + path);
    await this.page.getByLabel("Email").fill(account.email);
    await this.page.getByLabel("Password", { exact: true }).fill(account.password);
    await this.page.getByRole("button", { name: "Sign in", exact: true }).click();
  }

  async signOut(): Promise<void> {
    await this.visit.context.clearCookies();
    await this.page.goto(local);
    await this.page.getByRole("button", { name: "Sign in with a passkey" }).waitFor();
  }

  /** Sets whether the authenticator can verify its user. */
  async setVerified(isUserVerified: boolean): Promise<void> {
    await this.session.send("WebAuthn.setUserVerified", { authenticatorId: this.authenticatorId, isUserVerified });
  }

  async credentials(): Promise<number> {
    const { authenticatorId } = this;
    return (await this.session.send("WebAuthn.getCredentials", { authenticatorId })).credentials.length;
  }
}

async function addPasskey(page: Page, name: string): Promise<void> {
  await section(page).getByRole("button", { name: "Add a passkey" }).click();
  const dialog = dialogOf(page, "Add a passkey");
  await expectFocus(dialog.getByLabel("Name of the passkey"));
  await dialog.getByLabel("Name of the passkey").fill(name);
  await dialog.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("status").getByText("Passkey added.").waitFor();
  await section(page).getByText(name, { exact: true }).waitFor();
}

describe("passkeys", () => {
  test("a passkey is added, renamed, signs in, and is removed", async () => {
    const account = await Account.register();
    const window = await PasskeyWindow.open();
    const { page } = window;
    await window.signIn(account, "/settings");
    await section(page).getByText("You have no passkeys yet.").waitFor();
    await addPasskey(page, "My laptop");
    await section(page).getByText("Not used yet").waitFor();
    expect(await window.credentials()).toBe(1);
    await expectAccessibleInBothColorSchemes(page, "the list of passkeys");

    // The authenticator refuses a second passkey for the account.
    await section(page).getByRole("button", { name: "Add a passkey" }).click();
    await dialogOf(page, "Add a passkey").getByRole("button", { name: "Continue" }).click();
    await page.getByText("This device or password manager already has a passkey").waitFor();
    await page.keyboard.press("Escape");

    await section(page).getByRole("button", { name: "Rename passkey: My laptop" }).click();
    const field = dialogOf(page, "Rename passkey").getByLabel("Name of the passkey");
    expect(await field.inputValue()).toBe("My laptop");
    await field.fill("Work laptop");
    await field.press("Enter");
    await section(page).getByText("Work laptop", { exact: true }).waitFor();
    await expectFocus(section(page).getByRole("button", { name: "Rename passkey: Work laptop" }));

    await window.signOut();
    await expectAccessibleInBothColorSchemes(page, "the sign-in page with passkeys");
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await page.getByText("Hi, Robin").waitFor();
    await page.goto(`${local}/settings`);
    await section(page)
      .getByText(/^Last used/)
      .waitFor();

    await section(page).getByRole("button", { name: "Remove passkey: Work laptop" }).click();
    await dialogOf(page, "Remove the passkey “Work laptop”?")
      .getByRole("button", { name: "Remove passkey", exact: true })
      .click();
    await page.getByRole("status").getByText("Passkey removed.").waitFor();
    await section(page).getByText("You have no passkeys yet.").waitFor();
    expect((await account.read<{ data: unknown[] }>("/account/passkeys")).data).toEqual([]);

    await window.signOut();
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await page.getByRole("alert").getByText("The passkey wasn't accepted.").waitFor();
    await window.visit.close();
  });

  test("a passkey confirms that it is the user, on a phone", async () => {
    const account = await Account.register();
    const window = await PasskeyWindow.open({ viewport: phone });
    const { page } = window;
    await window.signIn(account, "/settings");
    await addPasskey(page, "My phone");
    // The service wants a recent sign-in once.
    let asked = false;
    await page.route("**/account/passkeys/*", (route) => {
      if (asked || route.request().method() !== "DELETE") return route.fallback();
      asked = true;
      return route.fulfill({
        status: 403,
        contentType: "application/problem+json",
        body: JSON.stringify({ title: "Forbidden", status: 403, code: "reauth_required" }),
      });
    });
    await section(page).getByRole("button", { name: "Remove passkey: My phone" }).click();
    await dialogOf(page, "Remove the passkey “My phone”?")
      .getByRole("button", { name: "Remove passkey", exact: true })
      .click();
    await dialogOf(page, "Confirm it's you").getByRole("button", { name: "Confirm with a passkey" }).click();
    await page.getByRole("status").getByText("Passkey removed.").waitFor();
    expect(asked).toBe(true);
    await window.visit.close();
  });

  test("a user who does not confirm reads what happened and can sign in with the password", async () => {
    const account = await Account.register();
    const window = await PasskeyWindow.open();
    const { page } = window;
    await window.signIn(account, "/settings");
    await addPasskey(page, "Key");
    await window.signOut();
    await window.setVerified(false);
    const button = page.getByRole("button", { name: "Sign in with a passkey" });
    await button.click();
    await page.getByRole("alert").getByText("No passkey was used.").waitFor();
    await expectAccessibleInBothColorSchemes(page, "a passkey that was not used");
    await page.getByLabel("Email").fill(account.email);
    await page.getByLabel("Password", { exact: true }).fill(account.password);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByText("Hi, Robin").waitFor();
    await window.visit.close();
  });

  test("a page at an IP address shows no passkeys", async () => {
    const ip = url.replace("//localhost:", "//127.0.0.1:");
    if (!ip.includes("//127.0.0.1:")) return;
    const visit = await BrowserWindow.open("/", undefined, {}, ip);
    await visit.page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
    expect(await visit.page.getByRole("button", { name: "Sign in with a passkey" }).count()).toBe(0);
    await visit.close();
  });
});
