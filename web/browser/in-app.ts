// Navigation within the app.
import type { Page } from "playwright-core";

/** Opens another page as a link of the app does, without loading the app again, and waits until the previous page is gone. */
export async function openInApp(page: Page, path: string): Promise<void> {
  await page.evaluate((to) => {
    for (const part of document.querySelectorAll<HTMLElement>("#main > :last-child > *")) part.dataset["previous"] = "";
    history.pushState(null, "", to);
  }, path);
  await page.waitForFunction(() => document.querySelector("[data-previous]") === null);
}
