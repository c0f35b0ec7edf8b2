// The files of the account: the library, the view of a file, and uploads.
import { lazyRouteComponent } from "@tanstack/react-router";
import { deferred } from "../../controls/deferred";
import { closeFileView } from "../../controls/viewed-file";

export { ChooseFilesDialog } from "./choose-files";
export { FileList } from "./file-list";
export { DropTarget, UploadButton, UploadList } from "./upload-controls";
export { isOpen, type QueuedUpload } from "./upload-queue";
export { uploads, useUploads } from "./page-uploads";

export const LibraryPage = lazyRouteComponent(() => import("./library"), "LibraryPage");
export const AttachedNotes = deferred(() => import("./attached-notes").then((m) => m.AttachedNotes));
export const FileView = deferred(() => import("./file-view").then((m) => m.FileView), { onFailure: closeFileView });
