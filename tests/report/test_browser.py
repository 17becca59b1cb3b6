"""The report in a real browser: pictures are drawn, slider and table work, nothing is asked of the network."""

import html
import json
import re
from itertools import pairwise

import numpy as np
import pytest

import groupowl as go
from browser_support import MISSING, SECONDS, running
from groupowl.report import render_report, write_report
from groupowl.report.page import SHOWN_ROWS
from report_support import HOSTILE, Page, classified, contents_of, cross_validated, full_path, sparse_data

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

if not MISSING:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.wait import WebDriverWait


class Report:
    """A page in the browser."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, path, *, width=1200, scheme="light", scripts=True):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.command(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}], media="screen"
        )
        self.command("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.driver.get(path.as_uri())
        if scripts:
            self.settle()
        return self

    def command(self, name, **arguments):
        return self.driver.execute_cdp_cmd(name, arguments)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def settle(self):
        """Wait until everything that was asked for is on the screen."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));"
        )

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map((found) => found.textContent)", selector
        )

    def column(self, position):
        return self.texts(f"#features tbody tr > :nth-child({position})")

    def type(self, selector, *keys):
        self.one(selector).send_keys(*keys)
        self.settle()

    def click(self, selector):
        self.run("document.querySelector(arguments[0]).click()", selector)
        self.settle()

    def point_at(self, x, y, selector="#path-plot svg"):
        """Move the pointer to a place in a picture, in shares of its width and height."""
        svg = self.one(selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", svg)
        box = svg.rect
        place = (int((x - 0.5) * box["width"]), int((y - 0.5) * box["height"]))
        ActionChains(self.driver, duration=0).move_to_element_with_offset(svg, *place).perform()
        self.settle()

    def boxes(self, selector):
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map((found) => {"
            "const box = found.getBoundingClientRect(); return [box.width, box.height]})",
            selector,
        )

    def complaints(self):
        """What the browser wrote to its console."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Addresses that were asked for, but for files, what the page carries, and pages of the browser's own."""
        sent = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [item["params"]["request"]["url"] for item in sent if item["method"] == "Network.requestWillBeSent"]
        assert any(address.startswith("file:") for address in asked)  # the log is at work
        return [address for address in asked if not address.startswith(("file:", "data:", "chrome:"))]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with running(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def report(browser):
    page = Report(browser)
    page.complaints()
    browser.get_log("performance")
    return page


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def three(folder):
    """Three features, one target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    model = go.GroupOWLRegressorCV(alphas=20, cv=3).fit(X, X @ [1.0, -0.6, 0.1] + 0.5 * rng.standard_normal(60))
    contents = contents_of(model, model.path_, feature_names=["age", "dose", "weight"])
    write_report(folder / "three.html", contents)
    return folder / "three.html", contents


@pytest.fixture(scope="module")
def many(folder):
    """Three thousand features, thirty targets."""
    data = go.datasets.make_correlated_groups(
        40, 3000, 30, n_informative=20, group_size=4, correlation=0.9, random_state=0
    )
    model = go.GroupOWLRegressorCV(alphas=12, cv=2, eps=0.3, tol=1e-3).fit(data.X, data.Y)
    contents = contents_of(model, model.path_)
    write_report(folder / "many.html", contents)
    return folder / "many.html", contents


@pytest.fixture(scope="module")
def small(folder):
    """Twelve features, two targets."""
    model = cross_validated()
    contents = contents_of(model, model.path_, feature_names=[f"Gene {j}" for j in range(12)])
    write_report(folder / "small.html", contents)
    return folder / "small.html", contents


@pytest.fixture(scope="module")
def full(folder):
    """Three thousand features, all of them in the model at the end of a path of a hundred alphas."""
    contents = contents_of(None, full_path())
    write_report(folder / "full.html", contents)
    return folder / "full.html", contents


@pytest.mark.parametrize("kind", ["three", "many", "full"])
def test_all_pictures_are_drawn_without_network_and_complaint(report, kind, request):
    path, contents = request.getfixturevalue(kind)
    report.open(path)
    plots = ["#path-plot"] + (["#choice-plot"] if contents.estimator is not None else [])
    for plot in plots:
        assert all(width > 300 and height > 200 for width, height in report.boxes(f"{plot} svg"))
        curves = report.boxes(f"{plot} .curves > path")
        assert curves
        assert max(width for width, _ in curves) > 300
        assert max(height for _, height in curves) > 50
        assert len(report.texts(f"{plot} .axes text")) > 6
        chosen = report.boxes(f"{plot} .chosen")
        assert len(chosen) == (contents.estimator is not None)
        assert all(height > 200 for _, height in chosen)
    assert report.complaints() == []
    assert report.requests() == []
    assert report.run("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("kind", ["three", "many"])
def test_pointing_at_a_line_shows_its_name(report, kind, request):
    path, contents = request.getfixturevalue(kind)
    report.open(path)
    data = Page(render_report(contents)).data["path"]
    tip = report.one("#path-plot .tip")
    assert not tip.is_displayed()
    x, y = report.run(
        "const line = document.querySelector('#path-plot .line0'), svg = document.querySelector('#path-plot svg');"
        "const end = line.getPointAtLength(line.getTotalLength()), box = svg.getBoundingClientRect();"
        "return [end.x / box.width, end.y / box.height]"
    )
    report.point_at(x, y)
    assert tip.is_displayed()
    name, place, *_ = report.texts("#path-plot .tip > div")
    assert name in [data["names"][r] for r in data["legend"][0]]
    what = "coefficient" if contents.n_targets == 1 else "norm"
    assert place.startswith(f"alpha {plain(contents.path.alphas[-1])}: {what} ")
    assert report.boxes("#path-plot .highlight")[0][0] > 20
    report.point_at(0.5, 0.5, "h1")
    assert not tip.is_displayed()


def plain(value):
    """A number with four digits, without an exponent."""
    return f"{float(f'{value:.4g}'):g}"


def test_pointing_at_the_choice_shows_the_score(report, small):
    path, contents = small
    report.open(path)
    report.point_at(0.99, 0.5, "#choice-plot svg")
    lines = report.texts("#choice-plot .tip > div")
    assert lines[0].startswith("mean squared error ")
    assert lines[1] == f"alpha {plain(contents.path.alphas[-1])}"
    assert lines[2] == f"{contents.path.n_selected[-1]} features"


@pytest.mark.parametrize("kind", ["three", "many"])
def test_the_slider_shows_what_is_selected_there(report, kind, request):
    """At every step the names are those of the path; at the chosen alpha those of the model."""
    path, contents = request.getfixturevalue(kind)
    report.open(path)
    model, names = contents.estimator, np.asarray(contents.feature_names)
    assert set(report.texts("#at-alpha dd .name")) == set(names[model.get_support(indices=True)])
    report.one("#alpha").send_keys(Keys.HOME)
    report.settle()
    assert report.texts("#at-alpha dd .name") == []
    assert report.one("#at-alpha").text.startswith("No feature selected")
    for i in range(1, 5):
        report.type("#alpha", Keys.ARROW_RIGHT)
        expected = model.get_support(indices=True) if i == model.best_index_ else contents.path[i].support
        assert set(report.texts("#at-alpha dd .name")) == set(names[expected]), i
        assert report.one("#alpha-value").text == plain(contents.path.alphas[i])
        assert report.one("#alpha").get_attribute("aria-valuetext").startswith("alpha ")
    report.click("#alpha-reset")
    assert set(report.texts("#at-alpha dd .name")) == set(names[model.get_support(indices=True)])
    assert report.complaints() == []


def test_the_slider_shows_clusters(report, small):
    path, contents = small
    report.open(path)
    clusters = contents.estimator.clusters_
    terms, entries = report.texts("#at-alpha dt"), report.texts("#at-alpha dd")
    for cluster in np.flatnonzero(np.bincount(clusters)[1:] > 1) + 1:
        members = {contents.feature_names[j] for j in np.flatnonzero(clusters == cluster)}
        assert set(entries[terms.index(f"Cluster {cluster}")].split(", ")) == members
    assert report.one("#at-alpha strong").text == f"{np.count_nonzero(clusters)} features in {clusters.max()} clusters"


def test_marks_follow_the_slider_in_both_pictures(report, small):
    path, _ = small
    report.open(path)
    before = report.run("return [...document.querySelectorAll('.mark')].map((mark) => mark.getAttribute('x1'))")
    report.type("#alpha", Keys.ARROW_LEFT)
    after = report.run("return [...document.querySelectorAll('.mark')].map((mark) => mark.getAttribute('x1'))")
    assert len(before) == 2
    assert all(float(one) > float(other) for one, other in zip(before, after, strict=True))


def test_a_click_into_a_picture_moves_the_slider(report, small):
    path, contents = small
    report.open(path)
    report.point_at(0.99, 0.5)
    ActionChains(report.driver, duration=0).click().perform()
    report.settle()
    assert report.one("#alpha").get_attribute("value") == str(len(contents.path) - 1)


@pytest.mark.parametrize("kind", ["small", "many"])
def test_headings_sort_by_click_and_by_keyboard(report, kind, request):
    path, contents = request.getfixturevalue(kind)
    report.open(path)
    table = Page(render_report(contents)).data["table"]
    assert [heading.get_attribute("aria-sort") for heading in report.all("#features th[aria-sort]")] == ["ascending"]
    for position, values in ((3, table["columns"][1]["values"]), (6, table["columns"][4]["values"])):
        heading = f"#features thead th:nth-child({position})"
        report.click(f"{heading} button")
        assert report.one(heading).get_attribute("aria-sort") == "descending"
        assert [values[table["names"].index(name)] for name in report.column(1)] == sorted(values, reverse=True)
        report.type(f"{heading} button", Keys.ENTER)
        assert report.one(heading).get_attribute("aria-sort") == "ascending"
        assert [values[table["names"].index(name)] for name in report.column(1)] == sorted(values)
        assert len(report.all("#features th[aria-sort]")) == 1
    report.click("#features thead th:first-child button")
    numbers = [int(name.lower().removeprefix("gene ")) for name in report.column(1)]
    assert numbers == sorted(numbers)  # gene 2 before gene 10


def test_coefficients_of_the_table_on_both_scales(report, folder):
    """A box turns those on the scale of X into those that the penalty sees, and back."""
    X, Y = sparse_data()
    model = go.GroupOWLRegressorCV(alphas=8, cv=2, standardize=True).fit(X * np.geomspace(1e-3, 1e3, 12), Y)
    write_report(folder / "scaled.html", contents_of(model, model.path_))
    report.open(folder / "scaled.html")
    shown = [int(name.removeprefix("gene ")) for name in report.column(1)]
    for coef in (model.coef_, model.scaled_coef_, model.coef_):
        values = [float(text.replace("\N{MINUS SIGN}", "-")) for text in report.texts("#features tbody td:last-child")]
        np.testing.assert_allclose(values, coef[-1, shown], rtol=6e-4)
        report.click("#scaled")
    assert report.complaints() == []


def test_search_and_slider_filter_the_table(report, small):
    path, contents = small
    report.open(path)
    everything = report.column(1)
    wanted = everything[0]
    report.type("#search", f"  {wanted.upper()} ")
    assert report.column(1) == [name for name in everything if wanted in name]
    assert report.one("#shown").text.startswith("1 of ")
    report.type("#search", "no such gene")
    assert report.texts("#features tbody td") == ["No feature matches."]
    report.type("#search", Keys.CONTROL, "a")
    report.type("#search", Keys.BACKSPACE)
    assert report.column(1) == everything
    report.click("#at-slider")
    report.type("#alpha", Keys.HOME, Keys.ARROW_RIGHT)
    entered = {contents.feature_names[j] for j in contents.path[1].support}
    assert set(report.column(1)) == entered & set(everything)
    assert len(report.column(1)) < len(everything)


def test_long_tables_are_cut_until_all_is_asked_for(report, full):
    path, contents = full
    report.open(path)
    assert len(report.all("#features tbody tr")) == SHOWN_ROWS
    assert report.one("#show-all").text == "Show all 3,000 rows"
    report.click("#show-all")
    assert len(report.column(1)) == len(contents.path[len(contents.path) - 1].support)
    report.click("#show-all")
    assert len(report.column(1)) == SHOWN_ROWS
    report.type("#search", "gene 299")
    assert len(report.column(1)) == 11  # 299, 2990 to 2999
    assert not report.one("#show-all").is_displayed()
    assert len(report.texts("#at-alpha dd .name")) == 200
    report.click("#at-alpha button")
    assert len(report.texts("#at-alpha dd .name")) == 3000
    assert report.complaints() == []


@pytest.mark.parametrize("kind", ["small", "many"])
def test_scripts_write_the_table_that_is_there_without_them(report, kind, request):
    """The same rows and numbers, so that a reader without scripts sees the same."""
    path, _ = request.getfixturevalue(kind)
    rows = re.findall(r'<tr><th scope="row"><div>(.*?)</div></th>(.*?)</tr>', path.read_text(encoding="utf-8"))
    static = [[name, *re.findall(r"<td[^>]*>(.*?)</td>", cells)] for name, cells in rows]
    report.open(path, scripts=False)
    assert report.one("#features").is_displayed()
    assert not report.one("#path-plot").is_displayed()
    assert not report.one("#search").is_displayed()
    report.open(path)
    assert report.run(
        "return [...document.querySelectorAll('#features tbody tr')].map((row) => "
        "[...row.cells].map((cell) => cell.textContent))"
    ) == [[html.unescape(cell) for cell in row] for row in static]
    assert report.one("#path-plot").is_displayed()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("n_classes", [3, 8])
def test_the_first_picture_of_several_classes_with_long_names_needs_no_scrolling(report, folder, width, n_classes):
    """On a telephone a name has a line of its own, and the cells of the classes one below it."""
    labels = [f"class {k} of the species" for k in range(n_classes)]
    X = np.random.default_rng(0).standard_normal((160, 30))
    y = np.argmax(X[:, :n_classes] + 0.1 * X[:, -n_classes:], axis=1)
    model = go.GroupOWLClassifierCV(alphas=6, cv=2, eps=0.1).fit(X, np.array(labels)[y])
    names = [f"concentration_{j}_as_measured_in_the_laboratory (protocol of {2000 + j})" for j in range(30)]
    path = folder / f"classes{n_classes}.html"
    write_report(path, contents_of(model, model.path_, feature_names=names))
    report.open(path, width=width)
    sizes = report.run(
        "const box = document.querySelector('#strongest .box'); const cells = [...box.querySelectorAll('td.entry')];"
        "return [box.scrollWidth, box.clientWidth, cells.length, cells.filter((cell) => "
        "cell.getBoundingClientRect().right > window.innerWidth || cell.getBoundingClientRect().width < 15).length]"
    )
    assert sizes[0] <= sizes[1]
    assert sizes[2] >= 5 * n_classes
    assert sizes[3] == 0


@pytest.mark.parametrize("width", [375, 1400])
@pytest.mark.parametrize("kind", ["three", "many"])
def test_nothing_is_wider_than_the_window(report, kind, width, request):
    path, _ = request.getfixturevalue(kind)
    report.open(path, width=width)
    assert report.run("return document.documentElement.scrollWidth <= window.innerWidth")
    box = report.run(
        "const box = document.querySelector('.box.tall'); return [box.clientWidth, box.scrollWidth, "
        "getComputedStyle(box).overflowX]"
    )
    assert box[2] == "auto"
    assert kind == "three" or box[1] > box[0]  # thirty columns scroll inside their box
    outside = report.run(
        "return [...document.querySelectorAll('.plot text')].filter((text) => {"
        "const box = text.getBoundingClientRect(); return box.left < 0 || box.right > window.innerWidth})"
        ".map((text) => text.textContent)"
    )
    assert outside == []


@pytest.mark.parametrize("smallest", [0.5, 0.01, 1e-9])
def test_numbers_below_a_picture_keep_apart(report, folder, smallest):
    path = folder / "ticks.html"
    write_report(path, contents_of(None, full_path(30, 10, smallest=smallest)))
    for width in (375, 700, 1400):
        report.open(path, width=width)
        edges = report.run(
            "const numbers = document.querySelectorAll('#path-plot .axes text[text-anchor=middle]:not(.count)');"
            "return [...numbers].map((text) => text.getBoundingClientRect()).map((box) => [box.left, box.right])"
        )
        assert len(edges) >= 2
        assert all(left[1] < right[0] for left, right in pairwise(sorted(edges)))


def test_light_and_dark(report, small):
    colors = {}
    for scheme in ("light", "dark"):
        report.open(small[0], scheme=scheme)
        colors[scheme] = report.run(
            "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color].map("
            "(color) => color.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0))"
        )
    assert colors["light"][0] > 600 > 200 > colors["light"][1]
    assert colors["dark"][0] < 200 < 600 < colors["dark"][1]


def test_pictures_fit_a_window_that_changes(report, small):
    report.open(small[0], width=1200)
    wide = report.boxes("#path-plot svg")[0][0]
    report.command("Emulation.setDeviceMetricsOverride", width=500, height=900, deviceScaleFactor=1, mobile=False)
    WebDriverWait(report.driver, SECONDS).until(lambda _: report.boxes("#path-plot svg")[0][0] < 500)
    report.settle()
    narrow = report.run("return document.querySelector('#path-plot svg').viewBox.baseVal.width")
    assert narrow < 500 < wide
    assert report.complaints() == []


def test_hostile_names_are_shown_and_not_run(report, folder):
    model = cross_validated()
    names = [HOSTILE[j % len(HOSTILE)] for j in range(12)]
    contents = contents_of(
        model, model.path_, title=HOSTILE[4], feature_names=names, target_names=names[:2], notes=[HOSTILE[5]]
    )
    write_report(folder / "hostile.html", contents)
    report.open(folder / "hostile.html")
    assert report.one("h1").text == HOSTILE[4]
    assert report.driver.title == HOSTILE[4]
    table = Page(render_report(contents)).data["table"]
    assert sorted(report.column(1)) == sorted(name.replace("\ud83e", "?") for name in table["names"])
    assert report.all("b, img") == []
    assert report.complaints() == []
    assert report.requests() == []


@pytest.mark.parametrize("kind", ["nothing", "no path", "two classes", "nothing on the path"])
def test_other_kinds_of_fits_work_too(report, folder, kind):
    X = np.random.default_rng(0).standard_normal((40, 6))
    if kind in ("nothing", "no path"):
        model = go.GroupOWLRegressor(alpha=1e6 if kind == "nothing" else 0.1).fit(X, X[:, :2])
        contents = contents_of(model)
    elif kind == "two classes":
        model = classified(n_classes=2)
        contents = contents_of(model, model.path_)
    else:
        contents = contents_of(None, go.group_owl_path(X, X[:, 0], alphas=[1e6, 1e5]))
    path = folder / f"{kind}.html"
    write_report(path, contents)
    report.open(path)
    assert report.one("h1").is_displayed()
    assert report.complaints() == []
    if kind == "nothing on the path":
        assert report.texts("#path-plot .empty") == ["No feature is selected at any alpha."]
    if kind == "no path":
        report.click("#features thead th:first-child button")
        assert report.one("#features thead th:first-child").get_attribute("aria-sort") == "ascending"
