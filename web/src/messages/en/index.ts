// All English messages as one object.
import artifacts from "./artifacts.json";
import common from "./common.json";
import composer from "./composer.json";
import library from "./library.json";
import pages from "./pages.json";
import transcript from "./transcript.json";

export default { ...artifacts, ...common, ...composer, ...library, ...pages, ...transcript };
