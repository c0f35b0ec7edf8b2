// Signing in and up, the pages of the links in mails, and the proof of identity that some changes need.
import { deferred } from "../../controls/deferred";

export { AuthLayout } from "./auth-layout";
export { ConfirmedForm } from "./confirmed-form";
export { noErrors } from "./form-errors";
export { EmailField } from "./login-form";
export { mailPageOf, sendsMail } from "./mail-links";
export { FormFooter, useForm } from "./password-form";
export { startProviderFailure, useProviderFailureToast } from "./provider-failure";
export { providers, titleOf } from "./providers";
export { ReauthenticationDialog, useReauthentication } from "./reauthenticate";

export const SignIn = deferred(() => import("./sign-in").then((m) => m.SignIn));
export const SignInAgain = deferred(() => import("./sign-in-again").then((m) => m.SignInAgain));
export const mailPages = {
  reset: deferred(() => import("./reset-password").then((m) => m.ResetPassword)),
  confirm: deferred(() => import("./confirm-email").then((m) => m.ConfirmEmail)),
};
