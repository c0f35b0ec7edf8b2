// The shares of the account in TanStack Query's cache, and the requests that create and revoke them.
import { api, body, Refusal, type Schemas } from "../../api/client";
import { pagedQuery } from "../../api/paged-query";
import { refetchInAllTabs } from "../../api/queries";
import { attempts } from "../../api/attempt";

export type Share = Schemas["Share"];
export type CreatedShare = Schemas["CreatedShare"];

/** The periods after which a share can expire, in days. */
export const shareDays = [1, 7, 30, 90] as const;
export type ShareDays = (typeof shareDays)[number];

/** The shares of a conversation that have not expired, newest first; null: those of all conversations. */
export const sharesQuery = (conversation_id: string | null) =>
  pagedQuery(
    ["shares", ...(conversation_id === null ? [] : [conversation_id])],
    conversation_id === null ? 50 : 20,
    (query) =>
      conversation_id === null
        ? api.GET("/shares", { params: { query } })
        : api.GET("/conversations/{conversation_id}/shares", { params: { path: { conversation_id }, query } }),
    { refetchOnMount: "always", refetchOnWindowFocus: "always" },
  );

/** What a share of the conversation up to a message would show. Without one, the first page decides which is the last one. */
export const sharePreviewQuery = (conversation_id: string, message_id?: string) =>
  pagedQuery(
    ["share-preview", conversation_id, message_id],
    20,
    (page) =>
      api.GET("/conversations/{conversation_id}/shares/preview", {
        params: { path: { conversation_id }, query: { ...page, ...(message_id === undefined ? {} : { message_id }) } },
      }),
    // The user shares what was displayed, so the preview does not change while it is displayed.
    { staleTime: Infinity, gcTime: 0 },
  );

/** The creation may be repeated with the same key. */
const attempt = attempts();

/** What a share shows: the messages of a conversation up to one, which of their files, and which artifacts. */
export interface ShareContent {
  message: string;
  files: readonly string[];
  artifacts: readonly string[];
  days: ShareDays;
}

/** Creates a share of a conversation. */
export async function createShare(
  conversation: string,
  { message, files, artifacts, days }: ShareContent,
): Promise<CreatedShare> {
  const content = {
    message_id: message,
    file_ids: [...files],
    artifact_ids: [...artifacts],
    expires_in_days: days,
  };
  try {
    return await attempt(JSON.stringify([conversation, content]), (key) =>
      body(
        api.POST("/conversations/{conversation_id}/shares", {
          params: { path: { conversation_id: conversation }, header: { "Idempotency-Key": key } },
          body: content,
        }),
      ),
    );
  } finally {
    void refetchInAllTabs("shares");
  }
}

/** Revokes a share. Succeeds if it has ended already. */
export async function revokeShare(share: string): Promise<void> {
  try {
    await api.DELETE("/shares/{share_id}", { params: { path: { share_id: share } } });
  } catch (refusal) {
    if (!(refusal instanceof Refusal) || refusal.status !== 404) throw refusal;
  } finally {
    void refetchInAllTabs("shares");
  }
}
