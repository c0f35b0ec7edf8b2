// The uploads of this page, and their requests.
import { useStore } from "zustand";
import { attach, conversationOfUpload, setUploading } from "../../api/attachments";
import { api, body } from "../../api/client";
import { filesChanged } from "../../api/files";
import { queryClient, sessionQuery } from "../../api/queries";
import { sendFile } from "../../api/send-file";
import { noticeSignOut } from "../../api/session-state";
import { declaredType } from "./upload-queue";
import { Uploads, type UploadRequests, type UploadsState } from "./uploads";

/** How long the service waits for a change of an upload. */
const longestWait = "20s";

const requests: UploadRequests = {
  create: ({ name, size, to, key, names }, file) =>
    body(
      api.POST("/files/uploads", {
        params: { header: { "Idempotency-Key": key } },
        body: {
          filename: name,
          media_type: declaredType(file),
          size,
          ...(to.project === null
            ? { purpose: to.conversation === null ? "library" : "attachment" }
            : { purpose: "project", project_id: to.project }),
          ...(names == null ? {} : { conversation_id: names }),
        },
      }),
    ),
  get: (upload_id, waits, signal) =>
    body(
      api.GET("/files/uploads/{upload_id}", {
        params: { path: { upload_id }, query: { wait: waits ? longestWait : "0s" } },
        signal,
      }),
    ),
  send: (uploadID, file, options) => sendFile("PUT", `/files/uploads/${uploadID}/content`, file, options),
  cancel: (upload_id) => api.DELETE("/files/uploads/{upload_id}", { params: { path: { upload_id } } }),
};

const storageKey = (): string =>
  `turnstone-uploads/${queryClient.getQueryData(sessionQuery.queryKey)?.account.account_id ?? ""}`;

export const uploads = new Uploads({
  requests,
  attach,
  conversationOfUpload,
  setUploading,
  filesChanged,
  noticeSignOut,
  store: (list) => sessionStorage.setItem(storageKey(), list),
  stored: () => sessionStorage.getItem(storageKey()),
});

export const useUploads = <T>(select: (state: UploadsState) => T): T => useStore(uploads.state, select);
