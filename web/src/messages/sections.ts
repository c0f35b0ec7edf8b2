// The sections of the settings page.
import type { MessageKey } from "./catalog";

/** The sections in the order of the page, by the fragment of the URL that addresses each. */
export const sections = {
  account: "pages.settings.account",
  appearance: "pages.settings.appearance",
  chat: "pages.settings.writing",
  prompts: "pages.prompts.title",
  accessibility: "pages.device.title",
  archive: "pages.archive.title",
  shares: "pages.shares.title",
  usage: "pages.usage.title",
  privacy: "pages.privacy.title",
  data: "pages.data.title",
  security: "pages.settings.security",
  about: "pages.about.title",
} as const satisfies Record<string, MessageKey>;

export type SectionID = keyof typeof sections;
export const sectionIDs = Object.keys(sections) as SectionID[];
