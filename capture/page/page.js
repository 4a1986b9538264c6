(function () {
  var body = document.body, all = function () { return document.querySelectorAll("main > .call"); };
  var act = {
    open: function () { all().forEach(function (d) { d.open = true; }); },
    close: function () { all().forEach(function (d) { d.open = false; }); },
    turns: function (b) { b.setAttribute("aria-pressed", body.classList.toggle("only-turns")); },
    bad: function (b) { b.setAttribute("aria-pressed", body.classList.toggle("only-bad")); }
  };
  document.querySelectorAll("nav button").forEach(function (b) {
    b.addEventListener("click", function () { act[b.dataset.act](b); });
  });
  function show() {
    var d = location.hash && document.getElementById(location.hash.slice(1));
    if (d && d.tagName === "DETAILS") d.open = true;
  }
  addEventListener("hashchange", show);
  show();
  addEventListener("keydown", function (e) {
    if (e.ctrlKey || e.metaKey || e.altKey || (e.key !== "j" && e.key !== "k")) return;
    var top = document.querySelector("nav").offsetHeight + 12, list = [].filter.call(all(), function (d) { return d.offsetParent; });
    if (e.key === "k") list.reverse();
    var next = list.find(function (d) {
      var y = d.getBoundingClientRect().top;
      return e.key === "j" ? y > top + 4 : y < top - 4;
    });
    if (next) scrollTo({ top: next.getBoundingClientRect().top + scrollY - top });
  });
})();
