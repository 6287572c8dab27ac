// What is done to an experiment; what is refused is shown.
import { post } from "/static/api.js";
import { failure, fill } from "/static/dom.js";

export function steering(experiment, trouble) {
  const send = async (path, body) => {
    try {
      await post(`lab/${path}`, body);
      if (path === "start") fill(trouble);
    } catch (error) { fill(trouble, failure(error)); }
  };
  return {
    start: (values) => send("start", { experiment, values }),
    stop: () => send("stop", {}),
    change: (values) => send("change", { experiment, values }),
    press: (button) => send("press", { experiment, button }),
  };
}
