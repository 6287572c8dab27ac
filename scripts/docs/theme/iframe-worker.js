/* Opened as a file, a page may not start workers: the search then runs in a frame of its own. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.start(String(url));
    }

    start(url) {
      const inside = this.frame.contentWindow;
      inside.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(new URL(each, url).href)));
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.load(url).then(() => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.deliver(data));
      });
    }

    load(url) {
      return new Promise((done, failed) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = url;
        script.onload = done;
        script.onerror = failed;
        this.frame.contentDocument.body.append(script);
      });
    }

    postMessage(data) {
      if (this.ready) this.deliver(data);
      else this.waiting.push(data);
    }

    deliver(data) {
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
