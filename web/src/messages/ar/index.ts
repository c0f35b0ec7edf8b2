// All Arabic messages as one object.
import common from "./common.json";
import composer from "./composer.json";
import library from "./library.json";
import pages from "./pages.json";
import transcript from "./transcript.json";

export default { ...common, ...composer, ...library, ...pages, ...transcript };
